import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { sha256 } from "../../src/checksum.ts";
import { RootstepError } from "../../src/errors.ts";
import { stream } from "../../src/random.ts";
import { trainConfigSchema } from "../../trainer/config.ts";
import { buildExamples } from "../../trainer/dataset.ts";
import { type TinkerProfile, tinkerProfile } from "../../trainer/engines/tinker/profiles.ts";
import { trainRun } from "../../trainer/train-run.ts";
import { labelledRuns } from "./embedded/support.ts";
import { contentsOf, openServed, servedCodec, servedModel, serveEmbedded } from "./tinker-client.ts";
import type { Fault, ServedCall, TinkerServer } from "./tinker-server.ts";

const SEED = 20_26;
const config = trainConfigSchema.parse({
  steps: 4,
  promptsPerStep: 4,
  groupSize: 4,
  learningRate: 1e-3,
  deadGroups: "keep",
  checkpointEvery: 2,
  evalEvery: 2,
  keepCheckpoints: 9,
});
const { examples } = buildExamples(labelledRuns("tinker resume", 8), servedCodec, {
  labels: ["injection"],
  maxPrompt: servedModel.maxPrompt + 1,
  withReference: true,
});
const stateSchema = z.object({ content: z.looseObject({ stepsDone: z.number(), loop: z.unknown() }) });

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "rootstep-tinker-resume-"));
});
afterAll(() => rm(root, { recursive: true }));

type Faults = (call: ServedCall) => Fault | undefined;

/** One process: opens the engine, trains in the folder from its newest checkpoint, closes. */
async function run(server: TinkerServer, profile: TinkerProfile, folder: string): Promise<void> {
  const engine = await openServed(server.url, profile, { journal: join(folder, "engine-journal.jsonl") });
  try {
    const data = { examples: examples.slice(0, 6), heldOut: examples.slice(6) };
    await trainRun({ config, engine, ...data, folder });
  } finally {
    await engine.close();
  }
}

/** All that a run left: its records byte for byte, and what the server holds for each of its checkpoints. */
async function outcome(server: TinkerServer, folder: string): Promise<Readonly<Record<string, string>>> {
  const left: Record<string, string> = {};
  for (const file of ["metrics.jsonl", "evaluations.jsonl"]) left[file] = await readFile(join(folder, file), "utf8");
  for (const name of await readdir(join(folder, "checkpoints"))) {
    const read = (file: string) => readFile(join(folder, "checkpoints", name, file));
    const reference = { weights: await read("weights.bin"), optimizer: await read("optimizer.bin") };
    const { weights, optimizer = new Uint8Array() } = contentsOf(server, reference);
    const { content } = stateSchema.parse(JSON.parse((await read("state.json")).toString("utf8")));
    const { stepsDone, loop, reason } = content;
    left[name] = JSON.stringify({ stepsDone, loop, reason, weights: sha256(weights), optimizer: sha256(optimizer) });
  }
  return left;
}

/** Runs until it is through, as often as needed. @returns what it left, and how the processes failed on the way */
async function runThrough(profile: TinkerProfile, folder: string, faults: Faults) {
  const server = await serveEmbedded(profile, { fault: faults });
  try {
    const failures: string[] = [];
    while (failures.length < 3) {
      const failed = await run(server, profile, folder).then(
        () => undefined,
        (error: unknown) => error,
      );
      if (failed === undefined) break;
      failures.push(failed instanceof RootstepError ? `${failed.code}: ${failed.what}` : `no error of ours: ${failed}`);
    }
    return { left: await outcome(server, folder), failures, models: server.models };
  } finally {
    await server.close();
  }
}

for (const id of ["verl-tinker", "skyrl-train"]) {
  const profile = tinkerProfile(id);

  describe(`training through ${id} (seed ${SEED})`, () => {
    let undisturbed: Readonly<Record<string, string>>;
    let calls = 0;
    beforeAll(async () => {
      const count: Faults = ({ total }) => {
        calls = total;
        return undefined;
      };
      const { left, failures } = await runThrough(profile, join(root, id), count);
      expect(failures).toEqual([]);
      undisturbed = left;
    });

    it("changes the policy, and leaves a checkpoint of the start, the middle and the end", () => {
      const checkpoints = Object.keys(undisturbed).filter((name) => name.startsWith("step-"));
      expect(checkpoints.sort()).toEqual(["step-000000", "step-000002", "step-000004"]);
      expect(new Set(checkpoints.map((name) => undisturbed[name])).size).toBe(3);
    });

    const random = stream(SEED, id);
    for (const part of [0.35, 0.6, 0.95]) {
      const [u, after] = [random.next(), random.chance(0.5)];
      it(`ends bit for bit the same after the server died ${after ? "after" : "before"} a call about ${part} of the way`, async () => {
        const victim = Math.max(1, Math.floor(calls * (part - 0.3 * u)));
        let dead = false;
        const die: Faults = ({ total }) => {
          if (dead || total !== victim) return undefined;
          dead = true;
          return { kind: "reset", when: after ? "after" : "before", restart: true };
        };
        const { left, failures, models } = await runThrough(profile, join(root, `${id}-${part}`), die);
        expect(dead).toBe(true);
        expect(failures).toEqual([expect.stringMatching(/^ENGINE_FAILED: .*(?:Model not found|was lost)/u)]);
        expect(left).toEqual(undisturbed);
        expect(models).toEqual([]);
      });
    }

    if (profile.deduplicates) {
      it("goes through without a stop where every eighth connection breaks, and ends bit for bit the same", async () => {
        const broken = stream(SEED, id, "broken");
        let last = false;
        let breaks = 0;
        // Opening has no number to be recognised by, and closing waits for nobody; the rest must bear it.
        const breakOften: Faults = ({ verb }) => {
          const spared = ["create_session", "create_model", "load_weights"].includes(verb);
          last = !spared && !last && broken.chance(1 / 8);
          if (!last) return undefined;
          breaks++;
          return { kind: "reset", when: broken.chance(0.5) ? "before" : "after" };
        };
        const { left, failures } = await runThrough(profile, join(root, `${id}-broken`), breakOften);
        expect(breaks).toBeGreaterThan(3);
        expect(failures).toEqual([]);
        expect(left).toEqual(undisturbed);
      });
    }
  });
}
