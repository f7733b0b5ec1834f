import { asRootstepError, RootstepError } from "../../src/errors.ts";
import type { VllmServer } from "./server.ts";

/** How new weights reach the servers; `engine`: there is nothing to bring, the training engine samples itself. */
export const SYNC_MODES = ["engine", "lora", "disk", "transfer"] as const;
export type SyncMode = (typeof SYNC_MODES)[number];

/** A sequence whose log-probabilities tell whether a server holds the engine's weights. */
export interface SyncProbe {
  readonly tokens: readonly number[];
  /** Log-probabilities of all tokens but the first under the engine's present weights. */
  engineLogprobs(): Promise<readonly number[]>;
}

export interface WeightSyncOptions {
  readonly mode: Exclude<SyncMode, "engine">;
  readonly servers: readonly VllmServer[];
  /** Served name of the base model. */
  readonly model: string;
  /** Name under which the adapter is served (mode lora). */
  readonly adapter?: string;
  /** Writes the engine's weights of that version where the servers can read them. @returns the folder */
  exportWeights(policyVersion: number): Promise<string>;
  readonly probe: SyncProbe;
  /** Largest difference of a log-probability between engine and server, in nats. */
  readonly tolerance: number;
  /** What a transfer backend is told; `{ folder }` by default. */
  readonly transferInfo?: (folder: string) => unknown;
}

export interface SyncReport {
  readonly policyVersion: number;
  /** Largest difference of a probe's log-probability per server, in nats. */
  readonly probeError: Readonly<Record<string, number>>;
}

/** Brings vLLM servers to a version of the policy and proves that they have it. */
export interface WeightSync {
  /** The name to sample from. */
  readonly model: string;
  /** The version that every server was last proved to hold. */
  readonly served: number | undefined;
  /** @throws RootstepError SYNC_FAILED, SYNC_MISMATCH, and those of the requests */
  push(policyVersion: number, signal?: AbortSignal): Promise<SyncReport>;
}

/** Weights go to all servers at once; afterwards a probe on each must give the engine's log-probabilities. */
export function vllmWeightSync(options: WeightSyncOptions): WeightSync {
  const { mode, servers, probe, tolerance, adapter = "policy" } = options;
  const model = mode === "lora" ? adapter : options.model;
  let served: number | undefined;

  async function pushTo(server: VllmServer, folder: string, version: number, signal?: AbortSignal): Promise<void> {
    switch (mode) {
      case "lora":
        return server.loadLora(adapter, folder, signal);
      case "disk":
        await server.reloadWeights(folder, signal);
        // What was computed with the old weights would be used for new requests.
        return server.resetPrefixCache(signal);
      case "transfer": {
        await server.pause("wait", signal);
        await server.startWeightUpdate(signal);
        await server.updateWeights({ update_info: options.transferInfo?.(folder) ?? { folder } }, signal);
        await server.finishWeightUpdate(String(version), signal);
        await server.resume(signal);
        const held = await server.weightVersion(signal);
        if (held === String(version)) return;
        const what = `after the transfer of version ${version} the server says that it holds ${held ?? "none"}`;
        throw new RootstepError("SYNC_FAILED", { what, where: server.name });
      }
    }
  }

  async function probeServer(server: VllmServer, expected: readonly number[], signal?: AbortSignal): Promise<number> {
    const found = await server.promptLogprobs(model, probe.tokens, signal);
    return expected.reduce((worst, logprob, i) => {
      const difference = Math.abs(logprob - (found[i] ?? Number.NaN));
      return Number.isNaN(difference) ? Number.POSITIVE_INFINITY : Math.max(worst, difference);
    }, 0);
  }

  return {
    model,
    get served() {
      return served;
    },
    async push(policyVersion, signal) {
      served = undefined;
      const folder = await options.exportWeights(policyVersion);
      await Promise.all(
        servers.map((server) =>
          pushTo(server, folder, policyVersion, signal).catch((thrown: unknown) => {
            if (signal?.aborted) throw thrown;
            const cause = asRootstepError(thrown);
            if (cause.code === "SYNC_FAILED") throw cause;
            const what = `version ${policyVersion} did not reach the server by ${mode}: ${cause.what}`;
            throw new RootstepError("SYNC_FAILED", { what, where: server.name, cause });
          }),
        ),
      );
      const expected = await probe.engineLogprobs();
      const errors = await Promise.all(
        servers.map(async (server) => [server.name, await probeServer(server, expected, signal)] as const),
      );
      const wrong = errors.find(([, difference]) => !(difference <= tolerance));
      if (wrong !== undefined) {
        throw new RootstepError("SYNC_MISMATCH", {
          what: `after version ${policyVersion} was brought by ${mode}, a probe differs by ${wrong[1].toPrecision(3)} nats from the engine; at most ${tolerance} is allowed`,
          where: wrong[0],
        });
      }
      served = policyVersion;
      return { policyVersion, probeError: Object.fromEntries(errors) };
    },
  };
}
