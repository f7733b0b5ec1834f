import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { sha256 } from "../../src/checksum.ts";
import { type MethodView, methodView, viewAsTrajectory } from "../../src/methods/view.ts";
import type { Trajectory } from "../../src/trajectory/schema.ts";
import { trainConfigSchema } from "../../trainer/config.ts";
import { buildExamples } from "../../trainer/dataset.ts";
import { openEmbeddedEngine } from "../../trainer/engines/embedded/engine.ts";
import { TOKEN } from "../../trainer/engines/embedded/vocabulary.ts";
import type { TrainingEngine } from "../../trainer/engines/engine.ts";
import { tinkerProfile } from "../../trainer/engines/tinker/profiles.ts";
import { openTracerPolicy, tracerChecksum } from "../../trainer/open-tracer.ts";
import type { TracerServing } from "../../trainer/served-tracer.ts";
import { createTracerPolicy } from "../../trainer/tracer-policy.ts";
import { trainRun } from "../../trainer/train-run.ts";
import { labelledRuns } from "./embedded/support.ts";
import { BASE_MODEL, contentsOf, openServed, servedCodec, servedModel, serveEmbedded } from "./tinker-client.ts";
import { promptOf } from "./tinker-embedded.ts";
import type { TinkerServer } from "./tinker-server.ts";

const profile = tinkerProfile("skyrl-train");
const runs = labelledRuns("open tracer", 8);
const views = runs.slice(6).map((trajectory) => methodView(trajectory, { withReference: true }));
const SERVED = "tracer-2";

let root: string;
let folder: string;
let server: TinkerServer;
/** An engine that holds the trained weights, and what it says. */
let trained: TrainingEngine;
let answers: readonly string[];
const closing: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "rootstep-open-tracer-"));
  folder = join(root, "run");
  server = await serveEmbedded(profile);
  const engine = await openServed(server.url, profile);
  const config = trainConfigSchema.parse({
    steps: 2,
    promptsPerStep: 4,
    groupSize: 4,
    learningRate: 2e-3,
    deadGroups: "keep",
    engine: {
      kind: "tinker",
      profile: profile.id,
      baseModel: BASE_MODEL,
      modelFolder: "served",
      maxPrompt: 99,
      maxCompletion: servedModel.maxCompletion,
    },
  });
  const { examples } = buildExamples(runs.slice(0, 6), servedCodec, {
    labels: ["injection"],
    maxPrompt: servedModel.maxPrompt + 1,
    withReference: true,
  });
  await trainRun({ config, engine, examples, heldOut: [], folder });
  await engine.close();
  trained = await openEmbeddedEngine();
  const reference = await readFile(join(folder, "checkpoints/step-000002/weights.bin"));
  await trained.importState({ weights: contentsOf(server, { weights: reference }).weights });
  answers = await createTracerPolicy(trained, trained.codec).predictBatch(views);
});
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});
afterAll(async () => {
  await trained.close();
  await server.close();
  await rm(root, { recursive: true });
});

interface Named {
  readonly engine?: URL | string;
  readonly rollouts?: readonly string[];
  readonly served?: string;
}
const serving = ({ engine, rollouts = [], served }: Named, more: Partial<TracerServing> = {}): TracerServing => ({
  servers: trainConfigSchema.shape.servers.parse({
    ...(engine && { engine: String(engine) }),
    rollouts: [...rollouts],
  }),
  served,
  environment: {},
  openCodec: () => servedCodec,
  ...more,
});

async function open(source: string, where: TracerServing | undefined) {
  const opened = await openTracerPolicy(source, where);
  closing.push(opened.close);
  return opened;
}

const completionSchema = z.looseObject({
  model: z.string(),
  prompt: z.array(z.number()),
  max_tokens: z.number(),
  prompt_logprobs: z.number().optional(),
});

/** As much of vLLM as answers by name, over an engine; prompt log-probabilities are those of `probed`. */
async function serveByName(name: string, engine: TrainingEngine, probed = engine): Promise<string> {
  const handle = async (path: string, body: unknown): Promise<object> => {
    if (path === "/v1/models") return { data: [{ id: "base" }, { id: name }] };
    const { model, prompt, prompt_logprobs } = completionSchema.parse(body);
    if (prompt_logprobs !== undefined) {
      // The embedded graphs give log-probabilities of answers alone; the training server writes 0 for the prompt, and so does this.
      const begin = prompt.indexOf(TOKEN.begin);
      const tokens = prompt.slice(begin + 1);
      const completions = [{ tokens, weights: tokens.map(() => 0), advantage: 0 }];
      const [[logprobs = []] = []] = await probed.forward([{ prompt: prompt.slice(0, begin), completions }]);
      const entries = prompt.slice(1).map((token, i) => ({ [String(token)]: { logprob: logprobs[i - begin] ?? 0 } }));
      const choice = { index: 0, token_ids: [1], logprobs: { token_logprobs: [-1] }, finish_reason: "stop" };
      return { model, choices: [{ ...choice, prompt_logprobs: [null, ...entries] }] };
    }
    const request = { prompts: [promptOf(prompt)], n: 1, temperature: 0, seed: "greedy" };
    const [[completion] = []] = await engine.sample(request);
    const { tokens = [], logprobs = [], finishReason = "stop" } = completion ?? {};
    const choice = { index: 0, token_ids: tokens, logprobs: { token_logprobs: logprobs }, finish_reason: finishReason };
    return { model, choices: [choice] };
  };
  const vllm: Server = createServer((request, response) => {
    void (async () => {
      const body: unknown = request.method === "POST" ? await json(request) : undefined;
      const answer = await handle(request.url ?? "", body);
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
    })();
  });
  await new Promise<void>((resolve) => vllm.listen(0, "127.0.0.1", resolve));
  closing.push(() => {
    vllm.closeAllConnections();
    return new Promise((resolve) => vllm.close(resolve));
  });
  const { port } = vllm.address() as AddressInfo;
  return `http://127.0.0.1:${port}`;
}

describe("a checkpoint whose weights lie on a training server", () => {
  it("answers from there as an engine with these weights does, of the run or of one checkpoint", async () => {
    for (const [source, step] of [
      [folder, 2],
      [join(folder, "checkpoints/step-000002"), 2],
    ] as const) {
      const { policy, notes } = await open(source, serving({ engine: server.url }));
      expect(policy.id).toBe(`tracer:tinker:skyrl-train:embedded:step-${step}`);
      expect(notes).toEqual([]);
      expect(await Promise.all(views.map((view) => policy.predict(view, { epoch: 0, seed: 1 })))).toEqual(answers);
    }
    expect(server.models).toHaveLength(2);
    for (const close of closing.splice(0)) await close();
    expect(server.models).toEqual([]);
  });

  it("has a checksum of its own: of the run, the step and the place of its weights", async () => {
    const sums = await Promise.all(
      ["step-000000", "step-000002"].map((name) => tracerChecksum(join(folder, "checkpoints", name))),
    );
    expect(new Set(sums).size).toBe(2);
    expect(await tracerChecksum(folder)).toBe(sums[1]);
  });

  it("says which servers to name where none is", async () => {
    const asked = { code: "CONFIG_INVALID", hint: expect.stringContaining("train eval") };
    await expect(open(folder, undefined)).rejects.toMatchObject(asked);
    await expect(open(folder, serving({}))).rejects.toMatchObject(asked);
    await expect(open(folder, serving({ served: SERVED }))).rejects.toMatchObject({
      code: "CONFIG_INVALID",
      where: "servers.rollouts",
    });
  });

  it("is refused where the server holds it no more, and leaves no model there", async () => {
    const other = await serveEmbedded(profile);
    closing.push(() => other.close());
    await expect(open(folder, serving({ engine: other.url }))).rejects.toMatchObject({
      code: "CHECKPOINT_GONE",
      what: expect.stringContaining("the weights of step 2"),
      hint: expect.stringContaining("--served"),
    });
    expect(other.models).toEqual([]);
  });

  it("is refused where the server serves another model, and where there is none", async () => {
    const other = await serveEmbedded(profile, { baseModel: "Qwen/Qwen3-8B" });
    closing.push(() => other.close());
    await expect(open(folder, serving({ engine: other.url }))).rejects.toMatchObject({
      code: "ENGINE_FAILED",
      what: `the engine serves Qwen/Qwen3-8B, not ${BASE_MODEL}`,
    });
    await expect(open(folder, serving({ engine: "http://127.0.0.1:9" }))).rejects.toMatchObject({
      code: "MODEL_UNREACHABLE",
    });
  });

  it("is refused where the model's folder holds another tokenizer than it was trained with", async () => {
    const openCodec = () => ({ ...servedCodec, id: "text:other" });
    await expect(open(folder, serving({ engine: server.url }, { openCodec }))).rejects.toMatchObject({
      code: "RUN_MISMATCH",
      what: expect.stringContaining(`${servedCodec.id}, the folder holds text:other`),
    });
  });

  it("refuses a run that does not fit however its log is cut, and answers on the others", async () => {
    const [short, long] = views;
    if (short === undefined || long === undefined) throw new Error("there are two views");
    const openCodec = () => ({
      ...servedCodec,
      encodePrompt: (trajectory: Trajectory) =>
        trajectory.id === long.id ? new Array<number>(100).fill(1) : servedCodec.encodePrompt(trajectory),
    });
    const { policy } = await open(folder, serving({ engine: server.url }, { openCodec }));
    await expect(policy.predict(long, { epoch: 0, seed: 1 })).rejects.toMatchObject({
      code: "VOCABULARY",
      what: expect.stringContaining("100 tokens even with its log cut; the checkpoint was trained with at most 99"),
    });
    expect(await policy.predict(short, { epoch: 0, seed: 1 })).toBe(answers[0]);
  });

  it("stops at once when it is interrupted", async () => {
    const controller = new AbortController();
    controller.abort();
    const { policy } = await open(folder, serving({ engine: server.url }));
    const asked = policy.predict(views[0]!, { epoch: 0, seed: 1, signal: controller.signal });
    await expect(asked).rejects.toMatchObject({ code: "INTERRUPTED" });
  });
});

function promptFor(view: MethodView | undefined): readonly number[] {
  if (view === undefined) throw new Error("there is no view");
  return servedCodec.encodePrompt(viewAsTrajectory(view));
}

describe("a checkpoint that vLLM serves by name", () => {
  it("answers from there; without the training server nothing proves that the name holds it, which is said", async () => {
    const url = await serveByName(SERVED, trained);
    const { policy, notes } = await open(folder, serving({ rollouts: [url], served: SERVED }));
    expect(await policy.predictBatch(views)).toEqual(answers);
    expect(policy.id).toBe(`tracer:vllm:${SERVED}:step-2`);
    expect(notes).toEqual([expect.stringContaining("nothing proves")]);
  });

  it("is compared with the training server's weights where both are named", async () => {
    const url = await serveByName(SERVED, trained);
    const [view] = views;
    const [[completion] = []] = await trained.sample({
      prompts: [promptOf(promptFor(view))],
      n: 1,
      temperature: 1,
      seed: "probe",
    });
    const probe = [...promptFor(view), ...(completion?.tokens ?? [])];
    const openCodec = () => ({ ...servedCodec, encodeText: () => probe });
    const both = serving({ engine: server.url, rollouts: [url], served: SERVED }, { openCodec });
    const { notes, policy } = await open(folder, both);
    expect(notes).toEqual([]);
    expect(await policy.predictBatch(views)).toEqual(answers);
    const untrained = await openEmbeddedEngine();
    closing.push(() => untrained.close());
    const wrong = await serveByName(SERVED, untrained);
    const strict = { openCodec, probeTolerance: 1e-4 };
    const refused = open(folder, serving({ engine: server.url, rollouts: [wrong], served: SERVED }, strict));
    await expect(refused).rejects.toMatchObject({ code: "SYNC_MISMATCH", what: expect.stringContaining("step 2") });
  });

  it("is refused where the server does not serve that name", async () => {
    const url = await serveByName("other", trained);
    await expect(open(folder, serving({ rollouts: [url], served: SERVED }))).rejects.toMatchObject({
      code: "ENGINE_FAILED",
      what: `the server serves base, other, not ${SERVED}`,
    });
  });
});

describe("a checkpoint of an older rootstep", () => {
  /** Takes out of a checkpoint what older ones did not say. */
  async function withoutPolicy(checkpoint: string): Promise<void> {
    const file = join(checkpoint, "state.json");
    const { content } = JSON.parse(await readFile(file, "utf8"));
    delete content.policy;
    await writeFile(file, JSON.stringify({ content, sha256: sha256(JSON.stringify(content)) }));
  }

  it("is opened by what the manifest of its run says, and refused without one", async () => {
    const old = join(root, "old");
    await cp(folder, old, { recursive: true });
    for (const step of ["step-000000", "step-000002"]) await withoutPolicy(join(old, "checkpoints", step));
    await expect(open(old, serving({ engine: server.url }))).rejects.toMatchObject({ code: "FILE_MISSING" });
    const { content } = JSON.parse(await readFile(join(folder, "checkpoints/step-000002/state.json"), "utf8"));
    const manifest = {
      runFolderVersion: 1,
      kind: "train",
      rootstep: "0.1.0",
      startedAt: "2026-11-30T00:00:00.000Z",
      settings: { engine: content.policy.engine },
      inputs: {},
    };
    await writeFile(join(old, "manifest.json"), JSON.stringify(manifest));
    const { policy } = await open(old, serving({ engine: server.url }));
    expect(await policy.predictBatch(views)).toEqual(answers);
  });
});
