import { describe, expect, it } from "vitest";
import { RootstepError } from "../../src/errors.ts";
import { vllmRollouts } from "../../trainer/vllm/rollouts.ts";
import type { VllmChoice, VllmServer } from "../../trainer/vllm/server.ts";
import { vllmWeightSync, type WeightSyncOptions } from "../../trainer/vllm/weight-sync.ts";

/** Answers of the real server that a test changes; what it was told, in order. */
interface Changes {
  readonly logprobs?: readonly number[];
  readonly version?: string | undefined;
  readonly fails?: string;
}

/** The verbs of a server that keeps no weights: `vllm.suite.ts` has the real one. */
function noted(name: string, changes: Changes = {}): VllmServer & { readonly told: string[] } {
  const told: string[] = [];
  let held: string | undefined;
  const tell = async (verb: string): Promise<void> => {
    told.push(verb);
    if (changes.fails === verb.split(" ")[0]) {
      throw new RootstepError("MODEL_SERVER_ERROR", { what: `${verb} went wrong`, where: name });
    }
  };
  const choice: VllmChoice = { tokens: [7], logprobs: [-1], finishReason: "stop" };
  return {
    name,
    told,
    sample: async ({ n }) => Array.from({ length: n }, () => choice),
    async promptLogprobs(model) {
      await tell(`probe ${model}`);
      return changes.logprobs ?? [-1, -2];
    },
    models: async () => [],
    gauges: async () => ({ running: 0, waiting: 0 }),
    health: async () => {},
    loadLora: (adapter, folder) => tell(`lora ${adapter} ${folder}`),
    unloadLora: (adapter) => tell(`unload ${adapter}`),
    pause: (mode) => tell(`pause ${mode}`),
    resume: () => tell("resume"),
    startWeightUpdate: () => tell("start"),
    updateWeights: (info) => tell(`update ${JSON.stringify(info)}`),
    async finishWeightUpdate(version) {
      await tell(`finish ${version}`);
      held = version;
    },
    weightVersion: async () => ("version" in changes ? changes.version : held),
    reloadWeights: (folder) => tell(`reload ${folder}`),
    resetPrefixCache: () => tell("reset-prefix-cache"),
  };
}

describe("weight sync to vLLM servers", () => {
  const sync = (mode: WeightSyncOptions["mode"], servers: readonly VllmServer[]) =>
    vllmWeightSync({
      mode,
      servers,
      model: "base",
      adapter: "policy-1",
      exportWeights: async (version) => `/weights/${version}`,
      probe: { tokens: [1, 2, 3], engineLogprobs: async () => [-1, -2] },
      tolerance: 0.01,
    });

  const order: readonly (readonly [WeightSyncOptions["mode"], string, readonly string[]])[] = [
    ["lora", "policy-1", ["lora policy-1 /weights/4", "probe policy-1"]],
    // Before the probe: what was computed with the old weights would answer it.
    ["disk", "base", ["reload /weights/4", "reset-prefix-cache", "probe base"]],
    [
      "transfer",
      "base",
      [
        ...["pause wait", "start", 'update {"update_info":{"folder":"/weights/4"}}', "finish 4", "resume"],
        "probe base",
      ],
    ],
  ];
  for (const [mode, model, told] of order) {
    it(`by ${mode} goes to every server, in the order that the server needs, and ends with the probe`, async () => {
      const servers = [noted("one"), noted("two")];
      const pushed = sync(mode, servers);
      expect(pushed.model).toBe(model);
      expect(pushed.served).toBeUndefined();
      expect(await pushed.push(4)).toEqual({ policyVersion: 4, probeError: { one: 0, two: 0 } });
      expect(pushed.served).toBe(4);
      expect(servers.map((server) => server.told)).toEqual([told, told]);
    });

    it(`by ${mode} stops the run where one server's probe differs, and names it`, async () => {
      for (const logprobs of [[-1, -2.5], [-1, Number.NaN], [-1]]) {
        const pushed = sync(mode, [noted("good"), noted("stale", { logprobs })]);
        await expect(pushed.push(4)).rejects.toMatchObject({
          code: "SYNC_MISMATCH",
          where: "stale",
          what: expect.stringMatching(/version 4 .*by \w+, a probe differs by (?:0\.500|Infinity) nats/u),
        });
        expect(pushed.served).toBeUndefined();
      }
    });

    it(`by ${mode} says which server it did not reach, and serves no version then`, async () => {
      const fails = { lora: "lora", disk: "reset-prefix-cache", transfer: "update" }[mode];
      const broken = noted("broken", { fails });
      const pushed = sync(mode, [noted("good"), broken]);
      await expect(pushed.push(4)).rejects.toMatchObject({
        code: "SYNC_FAILED",
        where: "broken",
        what: expect.stringContaining(`by ${mode}: ${fails}`),
      });
      expect(pushed.served).toBeUndefined();
      expect(broken.told).not.toContain("probe base");
    });
  }

  it("by transfer does not take a server's word that names another version", async () => {
    for (const version of ["3", undefined]) {
      await expect(sync("transfer", [noted("behind", { version })]).push(4)).rejects.toMatchObject({
        code: "SYNC_FAILED",
        what: expect.stringContaining(`it holds ${version ?? "none"}`),
      });
    }
  });

  it("notes with every sample the version that was last proved", async () => {
    const server = noted("one");
    const pushed = sync("lora", [server]);
    const source = vllmRollouts({
      ...{ servers: [server], model: pushed.model, maxCompletion: 4, concurrency: 2, attempts: 1 },
      policyVersion: () => pushed.served,
    });
    const versions = async () =>
      (await source.sample({ prompts: [[1], [2]], n: 2, temperature: 1, seed: "s" }))
        .flat()
        .map((one) => one.policyVersion);
    expect(await versions()).toEqual([undefined, undefined, undefined, undefined]);
    await pushed.push(4);
    expect(await versions()).toEqual([4, 4, 4, 4]);
    await pushed.push(5);
    expect(await versions()).toEqual([5, 5, 5, 5]);
  });
});
