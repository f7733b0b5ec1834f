import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { trainConfigSchema } from "../../trainer/config.ts";
import { buildExamples } from "../../trainer/dataset.ts";
import { openEmbeddedEngine } from "../../trainer/engines/embedded/engine.ts";
import { TOKEN } from "../../trainer/engines/embedded/vocabulary.ts";
import type { TrainingEngine } from "../../trainer/engines/engine.ts";
import { tinkerProfile } from "../../trainer/engines/tinker/profiles.ts";
import type { Metric } from "../../trainer/metrics.ts";
import { openEngine } from "../../trainer/open-engine.ts";
import { trainRun } from "../../trainer/train-run.ts";
import type { SyncReport } from "../../trainer/vllm/weight-sync.ts";
import { labelledRuns } from "./embedded/support.ts";
import { BASE_MODEL, servedCodec, servedModel, serveEmbedded } from "./tinker-client.ts";
import { promptOf } from "./tinker-embedded.ts";

const profile = tinkerProfile("skyrl-train-full");
const root = mkdtempSync(join(tmpdir(), "rootstep-full-sync-"));
afterAll(() => rmSync(root, { recursive: true }));
const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const { examples } = buildExamples(labelledRuns("full sync", 6), servedCodec, {
  labels: ["injection"],
  maxPrompt: servedModel.maxPrompt + 1,
  withReference: true,
});

/** One tensor in the format of safetensors: length of the header, header, data. */
function safetensors(weights: Uint8Array): Buffer {
  const header = Buffer.from(
    JSON.stringify({ flat: { dtype: "F32", shape: [weights.length / 4], data_offsets: [0, weights.length] } }),
  );
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  return Buffer.concat([length, header, weights]);
}

function readSafetensors(file: string): Uint8Array {
  const bytes = readFileSync(file);
  return bytes.subarray(8 + Number(bytes.readBigUInt64LE(0)));
}

/** Packs as SkyRL 0.4 does: a plain tar of the model's folder under a name that says gz. */
function packer(checkpoints: string, files: (weights: Uint8Array) => Readonly<Record<string, string | Uint8Array>>) {
  return async ({ model, name, weights }: { model: string; name: string; weights: Uint8Array }): Promise<void> => {
    const staging = mkdtempSync(join(root, "staging-"));
    for (const [file, content] of Object.entries(files(weights))) writeFileSync(join(staging, file), content);
    const folder = join(checkpoints, model, "sampler_weights");
    mkdirSync(folder, { recursive: true });
    execFileSync("tar", ["-cf", join(folder, `${name}.tar.gz`), "-C", staging, "."]);
  };
}
const wholeModel = (weights: Uint8Array) => ({ "config.json": "{}", "model.safetensors": safetensors(weights) });

const rpcSchema = z.object({ method: z.literal("reload_weights"), kwargs: z.object({ weights_path: z.string() }) });
const updateSchema = z.object({ update_info: z.object({ folder: z.string() }) });
const completionSchema = z.looseObject({
  model: z.string(),
  prompt: z.array(z.number()),
  n: z.number().default(1),
  seed: z.number().default(0),
  temperature: z.number(),
  prompt_logprobs: z.number().optional(),
});

/** As much of vLLM as samples and takes new weights, over an engine that reads them from the folder it is told. */
async function startVllm(options: { readonly keepsOldWeights?: boolean } = {}) {
  const engine: TrainingEngine = await openEmbeddedEngine();
  const asked: string[] = [];
  let [version, announced, paused] = ["none", "", false];
  async function load(folder: string): Promise<void> {
    expect(existsSync(join(folder, "config.json"))).toBe(true);
    if (options.keepsOldWeights !== true) {
      await engine.importState({ weights: readSafetensors(join(folder, "model.safetensors")) });
    }
  }
  async function complete(body: unknown): Promise<object> {
    const { model, prompt, n, seed, temperature, prompt_logprobs } = completionSchema.parse(body);
    expect(paused).toBe(false);
    const choice = (index: number, tokens: readonly number[], logprobs: readonly number[], finish: string) => ({
      index,
      token_ids: tokens,
      logprobs: { token_logprobs: logprobs },
      finish_reason: finish,
    });
    if (prompt_logprobs === undefined) {
      const [group = []] = await engine.sample({ prompts: [promptOf(prompt)], n, temperature, seed: String(seed) });
      return { model, choices: group.map((each, i) => choice(i, each.tokens, each.logprobs, each.finishReason)) };
    }
    const begin = prompt.indexOf(TOKEN.begin);
    const tokens = prompt.slice(begin + 1);
    const completions = [{ tokens, weights: tokens.map(() => 0), advantage: 0 }];
    const [[logprobs = []] = []] = await engine.forward([{ prompt: prompt.slice(0, begin), completions }]);
    const entries = prompt.slice(1).map((token, i) => ({ [String(token)]: { logprob: logprobs[i - begin] ?? 0 } }));
    return { model, choices: [{ ...choice(0, [1], [-1], "stop"), prompt_logprobs: [null, ...entries] }] };
  }
  const handle = async (path: string, body: unknown): Promise<object> => {
    if (path !== "/v1/completions") asked.push(path);
    switch (path) {
      case "/v1/completions":
        return complete(body);
      case "/v1/unload_lora_adapter":
      case "/reset_prefix_cache":
      case "/start_weight_update":
        return { ok: true };
      case "/collective_rpc":
        await load(rpcSchema.parse(body).kwargs.weights_path);
        return { ok: true };
      case "/pause?mode=wait":
        paused = true;
        return { ok: true };
      case "/update_weights":
        await load(updateSchema.parse(body).update_info.folder);
        return { ok: true };
      case "/finish_weight_update":
        announced = z.object({ weight_version: z.string() }).parse(body).weight_version;
        return { ok: true };
      case "/resume":
        [paused, version] = [false, announced];
        return { ok: true };
      case "/weight_info":
        return { weight_version: version };
      default:
        throw new Error(`no such path: ${path}`);
    }
  };
  const server: Server = createServer((request, response) => {
    (async () => {
      const body: unknown = request.method === "POST" ? await json(request) : undefined;
      const answer = await handle(request.url ?? "", body);
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
    })().catch((error: unknown) => response.writeHead(500).end(String(error)));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closing.push(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    await engine.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked, engine };
}

interface Setting {
  readonly name: string;
  readonly sync: "disk" | "transfer" | "lora";
  readonly profileId?: string;
  readonly files?: (weights: Uint8Array) => Readonly<Record<string, string | Uint8Array>>;
  readonly checkpointsFolder?: string;
  readonly keepsOldWeights?: boolean;
  readonly overlap?: number;
}

/** Trains two steps with vLLM's stand-in sampling what the server trains. */
async function train(setting: Setting) {
  const { name, sync, profileId = profile.id, files = wholeModel } = setting;
  const checkpoints = join(root, `${name}-checkpoints`);
  const served = tinkerProfile(profileId);
  const server = await serveEmbedded(served, { pack: packer(checkpoints, files) });
  closing.push(() => server.close());
  const vllm = await startVllm(
    setting.keepsOldWeights === undefined ? {} : { keepsOldWeights: setting.keepsOldWeights },
  );
  const config = trainConfigSchema.parse({
    steps: 2,
    promptsPerStep: 3,
    groupSize: 4,
    learningRate: 5e-3,
    deadGroups: "keep",
    engine: {
      kind: "tinker",
      profile: profileId,
      baseModel: BASE_MODEL,
      modelFolder: "served",
      maxPrompt: servedModel.maxPrompt + 1,
      maxCompletion: servedModel.maxCompletion,
    },
    sampling: { from: "vllm", model: "base", sync, probeTolerance: 1e-3 },
    servers: {
      engine: server.url.href,
      rollouts: [vllm.url],
      checkpointsFolder: setting.checkpointsFolder ?? checkpoints,
    },
    ...(setting.overlap && { overlap: { staleness: setting.overlap } }),
  });
  const [example] = examples;
  const [[answer] = []] = await vllm.engine.sample({
    prompts: [promptOf(example?.prompt ?? [])],
    n: 1,
    temperature: 1,
    seed: "probe",
  });
  const probe = [...(example?.prompt ?? []), ...(answer?.tokens ?? [])];
  const folder = join(root, name);
  const syncs: SyncReport[] = [];
  const metrics: Metric[] = [];
  const opened = await openEngine({
    config,
    environment: {},
    folder,
    openCodec: () => ({ ...servedCodec, encodeText: () => probe }),
    onSync: (report) => syncs.push(report),
  });
  try {
    const { engine, rollouts, sync: bring } = opened;
    const data = { examples: examples.slice(0, 4), heldOut: examples.slice(4) };
    await trainRun({
      config,
      engine,
      ...(rollouts && { rollouts }),
      ...(bring && { sync: bring }),
      ...data,
      folder,
      onMetric: (metric) => metrics.push(metric),
    });
  } finally {
    await opened.close();
  }
  return { syncs, metrics, asked: vllm.asked, folder };
}

describe("whole models from the training server to vLLM", () => {
  for (const [sync, calls] of [
    ["disk", ["/collective_rpc", "/reset_prefix_cache"]],
    [
      "transfer",
      [
        "/pause?mode=wait",
        "/start_weight_update",
        "/update_weights",
        "/finish_weight_update",
        "/resume",
        "/weight_info",
      ],
    ],
  ] as const) {
    it(`go by ${sync}, and a probe proves every version`, async () => {
      const { syncs, metrics, asked, folder } = await train({ name: sync, sync });
      expect(syncs.map(({ policyVersion }) => policyVersion)).toEqual([0, 2, 4]);
      for (const { probeError } of syncs) expect(Math.max(...Object.values(probeError))).toBeLessThan(1e-3);
      expect(asked.filter((path) => path !== "/v1/unload_lora_adapter")).toEqual([...calls, ...calls, ...calls]);
      // Sampler and engine hold the same weights at every step.
      for (const { samplerRatio } of metrics) expect(samplerRatio?.mean).toBeCloseTo(1, 3);
      // Only the version that is served takes room.
      expect(readdirSync(join(folder, "sampler-weights"))).toEqual(["version-4"]);
    });
  }

  it("go with overlap too: the sampler's version is that of the schedule", async () => {
    const { syncs, metrics } = await train({ name: "overlap", sync: "disk", overlap: 1 });
    expect(syncs.map(({ policyVersion }) => policyVersion)).toEqual([0, 2, 4]);
    expect(metrics.map(({ staleness }) => staleness)).toEqual([
      { steps: 0, versions: 0 },
      { steps: 1, versions: 2 },
    ]);
  });

  it("are noticed where the server takes them and goes on with its old ones", async () => {
    await expect(train({ name: "stale", sync: "disk", keepsOldWeights: true })).rejects.toMatchObject({
      code: "SYNC_MISMATCH",
    });
  });

  it("are refused where the engine saved an adapter, or saves elsewhere than the settings say", async () => {
    const files = () => ({ "adapter_config.json": "{}", "adapter_model.safetensors": "" });
    await expect(train({ name: "adapter", sync: "disk", files })).rejects.toMatchObject({
      code: "SYNC_FAILED",
      what: expect.stringContaining("but adapter_config.json, adapter_model.safetensors"),
    });
    const elsewhere = { name: "elsewhere", sync: "disk", checkpointsFolder: join(root, "nowhere") } as const;
    await expect(train(elsewhere)).rejects.toMatchObject({
      code: "SYNC_FAILED",
      hint: expect.stringContaining("servers.checkpointsFolder"),
    });
  });

  it("and adapters go by their own modes only", async () => {
    for (const [profileId, sync, what] of [
      ["skyrl-train-full", "lora", 'they reach vLLM by "disk" or "transfer", not by "lora"'],
      ["skyrl-train", "disk", 'they reach vLLM by "lora" alone, not by "disk"'],
      ["skyrl-jax", "transfer", 'they reach vLLM by "lora" alone, not by "transfer"'],
      ["verl-tinker", "disk", "is not known to save what vLLM could load"],
    ] as const) {
      await expect(train({ name: `refused-${profileId}`, sync, profileId })).rejects.toMatchObject({
        code: "CONFIG_INVALID",
        where: "sampling.sync",
        what: expect.stringContaining(what),
      });
    }
  });
});
