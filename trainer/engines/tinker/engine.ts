import pLimit from "p-limit";
import { z } from "zod";
import { RootstepError } from "../../../src/errors.ts";
import { throwIfInterrupted } from "../../../src/interruption.ts";
import type { Clock } from "../../../src/models/clock.ts";
import { derivedSeed } from "../../../src/random.ts";
import type { ServerAddress } from "../../http.ts";
import type { TextCodec } from "../../text-codec.ts";
import type {
  Completion,
  EngineState,
  ForwardBackwardResult,
  Loss,
  OptimizerSettings,
  RolloutSource,
  SampleRequest,
  TrainingEngine,
  TrainingGroup,
} from "../engine.ts";
import { openTinkerClient } from "./client.ts";
import { bare, lossRequest, lossValue, type Sequence, sequencesOf, weightOf } from "./datums.ts";
import type { TargetLogprobs, TinkerDatum } from "./encoding.ts";
import { openEngineJournal } from "./journal.ts";
import type { TinkerProfile } from "./profiles.ts";

export interface TinkerEngineOptions {
  readonly address: ServerAddress;
  readonly profile: TinkerProfile;
  /** Model as the server knows it: a name, or a folder on its side. */
  readonly baseModel: string;
  readonly codec: TextCodec;
  readonly limits: TrainingEngine["limits"];
  readonly lora: { readonly rank: number; readonly seed: number };
  /** Sequences in one request. */
  readonly sequencesPerRequest?: number;
  /** Where what was asked is kept, for the next process; undefined keeps nothing. */
  readonly journal?: string;
  readonly clock?: Clock;
  readonly resultMs?: number;
  readonly signal?: AbortSignal | undefined;
}

/** An engine behind the Tinker protocol, with what a sampler needs of it. */
export interface TinkerEngine extends TrainingEngine {
  readonly codec: TextCodec;
  /** What this server cannot do and the run should know. */
  readonly notes: readonly string[];
  readonly profile: TinkerProfile;
  /** Saves the present weights for samplers. @returns the model's id and the name they are saved under */
  saveSamplerWeights(): Promise<{ readonly model: string; readonly name: string }>;
  /** What was saved, as the server packs it: a tar, by the profile of an adapter or of a whole model. */
  downloadSamplerWeights(): Promise<Uint8Array>;
}

const pathSchema = z.looseObject({ path: z.string() });
const optimSchema = z.looseObject({ metrics: z.record(z.string(), z.number().nullable()).nullish() });
/** What a checkpoint of such an engine holds: where the server keeps the weights, and the optimiser steps behind them. */
const referenceSchema = z.strictObject({
  tinker: z.literal(1),
  path: z.string(),
  optimSteps: z.number().int().nonnegative().optional(),
});

const SEQUENCES_PER_REQUEST = 64;
const SAMPLING_REQUESTS = 16;
/** Milliseconds for unloading a model, which nothing waits for. */
const UNLOAD_MS = 30_000;

/**
 * Opens a session and a model on a Tinker server.
 *
 * States are references: the weights stay with the server, a checkpoint holds the path to them.
 * @throws RootstepError ENGINE_FAILED where the server does not serve the model
 */
export async function openTinkerEngine(options: TinkerEngineOptions): Promise<TinkerEngine> {
  const { profile, codec, limits, baseModel } = options;
  const { encoding, reduction } = profile;
  const journal = openEngineJournal(options.journal);
  const client = await openTinkerClient({ ...options, journal });
  const supported = await client.supportedModels();
  if (!supported.includes(baseModel)) {
    const what = `the engine serves ${supported.join(", ") || "no model"}, not ${baseModel}`;
    throw new RootstepError("ENGINE_FAILED", { what, where: client.name, hint: "Correct the key engine.baseModel." });
  }
  for (const left of journal.leftModels) await letGo(left);
  let model = await createModel();
  let seqId = 0;
  let saved = 0;
  /** Calls since the last optimiser step; a mean over sequences cannot be taken in parts of unknown number. */
  let pending = 0;
  /** Optimiser steps behind the present weights; undefined after a checkpoint that does not say. */
  let optimSteps: number | undefined = 0;
  /** Where the sampler's copy of the present weights is; undefined when they have moved on. */
  let samplerPath: string | undefined;

  async function createModel(): Promise<string> {
    const { rank, seed } = options.lora;
    const adapter = { lora: { rank, seed }, "full-as-rank-0": { rank: 0, seed }, full: undefined }[profile.parameters];
    return client.createModel({ base_model: baseModel, ...(adapter && { lora_config: adapter }) });
  }

  /** Unloads a model. One that cannot be reached now stays in the journal: the next process tries again. */
  async function letGo(modelId: string): Promise<void> {
    const verb = { name: "unload_model", path: "/unload_model", json: { model_id: modelId }, changes: false };
    try {
      // With a limit of its own: an interrupted run lets go of its model too.
      await client.run(verb, AbortSignal.timeout(UNLOAD_MS));
    } catch (error) {
      // 400, 404: the server does not hold it any more.
      const status = error instanceof RootstepError && error.cause instanceof RootstepError && error.cause.status;
      if (status !== 400 && status !== 404) return;
    }
    await journal.note({ event: "unloaded", modelId });
  }

  /** Saves under a name that no earlier attempt has used: servers refuse a name the second time. */
  async function save(verb: "save_weights" | "save_weights_for_sampler", name: string): Promise<string> {
    const { path } = await runJson(pathSchema, verb, () => ({ path: `${name}-${++saved}` }), false);
    return path;
  }

  async function runJson<T>(schema: z.ZodType<T>, name: string, json: () => object, changes = true): Promise<T> {
    const body = () => ({ model_id: model, ...json() });
    const result = await client.run({ name, path: `/${name}`, json: body, changes });
    const parsed = schema.safeParse(parseResult(result, name, client.name));
    if (parsed.success) return parsed.data;
    const what = `the result of ${name} has another shape: ${z.prettifyError(parsed.error)}`;
    throw new RootstepError("ENGINE_FAILED", { what, where: client.name });
  }

  async function send(
    data: readonly TinkerDatum[],
    loss: { readonly lossFn: string; readonly lossFnConfig: Readonly<Record<string, number>> },
    forwardOnly: boolean,
  ): Promise<TargetLogprobs> {
    const logprobs: (readonly number[])[] = [];
    const size = options.sequencesPerRequest ?? SEQUENCES_PER_REQUEST;
    for (let from = 0; from < data.length; from += size) {
      const part = data.slice(from, from + size);
      const request = { modelId: model, seqId: ++seqId, data: part, ...loss, forwardOnly };
      const name = forwardOnly ? "forward" : "forward_backward";
      const result = await client.run({ name, changes: !forwardOnly, ...encoding.forwardBackward(request) });
      const rows = encoding.readForwardBackward(result);
      logprobs.push(...checkedRows(rows, part, client.name));
    }
    return logprobs;
  }

  const forwardOf = (sequences: readonly Sequence[]): Promise<TargetLogprobs> =>
    send(sequences.map(bare), { lossFn: "cross_entropy", lossFnConfig: {} }, true);

  function checkedSequences(groups: readonly TrainingGroup[]): Sequence[] {
    for (const { prompt, completions } of groups) {
      checkTokens(prompt, codec, client.name);
      for (const { tokens } of completions) checkTokens(tokens, codec, client.name);
    }
    return sequencesOf(groups);
  }

  async function samplerWeights(): Promise<string> {
    if (samplerPath !== undefined) return samplerPath;
    samplerPath = await save("save_weights_for_sampler", "sampler");
    return samplerPath;
  }

  /** Weights that a sampler holds. */
  interface Saved {
    readonly path: string;
    readonly policyVersion: number | undefined;
  }

  async function samplePrompt(
    prompt: readonly number[],
    p: number,
    request: SampleRequest,
    { path, policyVersion }: Saved,
  ): Promise<readonly Completion[]> {
    checkTokens(prompt, codec, client.name);
    const verb = {
      name: "asample",
      path: "/asample",
      changes: false,
      json: {
        model_path: path,
        num_samples: request.n,
        prompt: { chunks: [{ type: "encoded_text", tokens: prompt }] },
        sampling_params: {
          max_tokens: limits.maxCompletion,
          seed: derivedSeed(request.seed, "tinker", p),
          temperature: request.temperature,
          top_p: 1,
          stop: codec.endTokens,
        },
      },
    };
    const completions = encoding.readSamples(await client.run(verb, request.signal));
    if (policyVersion === undefined) return completions;
    return completions.map((completion) => ({ ...completion, policyVersion }));
  }

  /** Asks for all prompts; the first failure ends what is still in flight: its groups would be thrown away. */
  async function sampleFrom(saved: Saved, request: SampleRequest): Promise<readonly (readonly Completion[])[]> {
    const limit = pLimit(SAMPLING_REQUESTS);
    const failed = new AbortController();
    const signals = [failed.signal, options.signal, request.signal].filter((signal) => signal !== undefined);
    const signal = AbortSignal.any(signals);
    const groups = request.prompts.map((prompt, p) =>
      limit(() => samplePrompt(prompt, p, { ...request, signal }, saved)).catch((error: unknown) => {
        limit.clearQueue();
        failed.abort(error);
        throw error;
      }),
    );
    return await Promise.all(groups);
  }

  async function saveSamplerWeights() {
    const path = await samplerWeights();
    return { model, name: path.split("/").at(-1) ?? path };
  }

  const savedNow = async (): Promise<Saved> => {
    const policyVersion = optimSteps;
    return { path: await samplerWeights(), policyVersion };
  };
  const id = `tinker:${profile.id}:${baseModel.split("/").at(-1)}`;

  return {
    id,
    profile,
    codec,
    limits,
    notes:
      profile.gradientClipping === undefined
        ? [`engine ${profile.id} cannot clip the gradient's norm: optimizer.maxGradNorm has no effect`]
        : [],
    async sample(request): Promise<readonly (readonly Completion[])[]> {
      throwIfInterrupted(request.signal, client.name);
      return sampleFrom(await savedNow(), request);
    },
    ...(profile.samplesWhileTraining && {
      async frozenSampler(): Promise<RolloutSource> {
        const saved = await savedNow();
        return { id, sample: (request) => sampleFrom(saved, request) };
      },
    }),
    async forward(groups) {
      const sequences = checkedSequences(groups);
      return perCompletion(groups, sequences, await forwardOf(sequences));
    },
    async forwardBackward(groups: readonly TrainingGroup[], loss: Loss): Promise<ForwardBackwardResult> {
      const sequences = checkedSequences(groups);
      const trained = sequences.filter((sequence) => weightOf(sequence) > 0);
      if (reduction === "sequence-mean" && pending > 0 && trained.length > 0) {
        throw new RootstepError("ENGINE_FAILED", {
          what: `engine ${profile.id} averages over sequences: one forwardBackward per optimiser step`,
          hint: "Give all groups of an update in one call.",
        });
      }
      const rest = sequences.filter((sequence) => weightOf(sequence) <= 0);
      const present =
        loss.kind === "cross-entropy" && reduction === "sequence-mean" ? await forwardOf(trained) : undefined;
      const request = lossRequest(trained, loss, reduction, { total: trained.length, ...(present && { present }) });
      const rows = await send(request.data, request, false);
      if (trained.length > 0) pending++;
      const restRows = await forwardOf(rest);
      const byPlace = new Map<Sequence, readonly number[]>();
      trained.forEach((sequence, i) => void byPlace.set(sequence, rows[i] ?? []));
      rest.forEach((sequence, i) => void byPlace.set(sequence, restRows[i] ?? []));
      const logprobs = sequences.map((sequence) => byPlace.get(sequence) ?? []);
      return { loss: lossValue(sequences, logprobs, loss), logprobs: perCompletion(groups, sequences, logprobs) };
    },
    async optimStep(settings: OptimizerSettings) {
      const seq_id = ++seqId;
      const { metrics } = await runJson(optimSchema, "optim_step", () => ({
        seq_id,
        adam_params: {
          learning_rate: settings.learningRate,
          beta1: settings.beta1,
          beta2: settings.beta2,
          eps: settings.epsilon,
          weight_decay: settings.weightDecay,
          ...(profile.gradientClipping !== undefined && { [profile.gradientClipping]: settings.maxGradNorm }),
        },
      }));
      pending = 0;
      samplerPath = undefined;
      if (optimSteps !== undefined) optimSteps++;
      const name = profile.gradientNorm.find((candidate) => metrics?.[candidate] !== undefined);
      const gradNorm = name === undefined ? undefined : (metrics?.[name] ?? Number.NaN);
      if (gradNorm === undefined) {
        const what = `optim_step reports no gradient norm (looked for ${profile.gradientNorm.join(", ")})`;
        throw new RootstepError("ENGINE_FAILED", { what, where: client.name });
      }
      if (Number.isFinite(gradNorm)) return { gradNorm };
      throw new RootstepError("ENGINE_NAN", { what: `the gradient norm is ${gradNorm}`, where: client.name });
    },
    async exportState(): Promise<EngineState> {
      const path = await save("save_weights", "state");
      const counted = optimSteps === undefined ? {} : { optimSteps };
      const reference = Buffer.from(JSON.stringify({ tinker: 1, path, ...counted }));
      return { weights: reference, optimizer: reference };
    },
    async importState({ weights, optimizer }: EngineState) {
      const { path, optimSteps: counted } = parseReference(weights);
      if (profile.loadsFirst) {
        const before = model;
        model = await createModel();
        await letGo(before);
        seqId = 0;
        saved = 0;
      }
      await runJson(z.unknown(), "load_weights", () => ({ path, optimizer: optimizer !== undefined }));
      pending = 0;
      // Weights alone are a start: the count begins with them.
      optimSteps = optimizer === undefined ? 0 : counted;
      samplerPath = undefined;
    },
    saveSamplerWeights,
    async downloadSamplerWeights() {
      const { name } = await saveSamplerWeights();
      return client.download(`/training_runs/${model}/checkpoints/${name}/download`);
    },
    async close() {
      await letGo(model);
      await client.close();
    },
  };
}

/** An id outside the vocabulary makes NaN that spreads to every model of the server until it is restarted. */
function checkTokens(tokens: readonly number[], { vocabulary }: TextCodec, where: string): void {
  const bad = tokens.find((token) => !Number.isInteger(token) || token < 0 || token >= vocabulary);
  if (bad === undefined) return;
  const what = `token ${bad} is outside the vocabulary of ${vocabulary}`;
  throw new RootstepError("ENGINE_FAILED", { what, where, hint: "Sampler and engine must hold the same base model." });
}

function checkedRows(rows: TargetLogprobs, data: readonly TinkerDatum[], where: string): TargetLogprobs {
  if (rows.length !== data.length) {
    const what = `the engine returned log-probabilities of ${rows.length} sequences for ${data.length}`;
    throw new RootstepError("ENGINE_FAILED", { what, where });
  }
  data.forEach(({ targets }, n) => {
    const row = rows[n];
    if (row?.length === targets.length) {
      const bad = row.find((logprob) => !Number.isFinite(logprob));
      if (bad === undefined) return;
      throw new RootstepError("ENGINE_NAN", { what: `the engine returned ${bad} as a log-probability`, where });
    }
    const what = `the engine returned ${row?.length ?? "no"} log-probabilities for ${targets.length} tokens`;
    throw new RootstepError("ENGINE_FAILED", { what, where });
  });
  return rows;
}

function parseResult(result: Uint8Array, name: string, where: string): unknown {
  try {
    return JSON.parse(Buffer.from(result).toString("utf8"));
  } catch (cause) {
    throw new RootstepError("ENGINE_FAILED", { what: `the result of ${name} is not JSON`, where, cause });
  }
}

/** Rows per sequence, cut to the completions' own tokens, in the shape of the groups. */
function perCompletion(
  groups: readonly TrainingGroup[],
  sequences: readonly Sequence[],
  rows: TargetLogprobs,
): readonly (readonly (readonly number[])[])[] {
  const shaped = groups.map((): (readonly number[])[] => []);
  sequences.forEach(({ p, g, offset }, n) => {
    const group = shaped[p];
    if (group !== undefined) group[g] = (rows[n] ?? []).slice(offset);
  });
  return shaped;
}

function parseReference(weights: Uint8Array): z.infer<typeof referenceSchema> {
  try {
    return referenceSchema.parse(JSON.parse(Buffer.from(weights).toString("utf8")));
  } catch (cause) {
    const what = "the checkpoint does not refer to weights on a Tinker server";
    throw new RootstepError("CHECKPOINT_CORRUPT", { what, cause, hint: "It was written by another engine." });
  }
}
