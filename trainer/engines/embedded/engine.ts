import pLimit from "p-limit";
import { RootstepError } from "../../../src/errors.ts";
import { shippedPath } from "../../../src/package-root.ts";
import type {
  Completion,
  EngineState,
  Loss,
  SampleRequest,
  TeacherCodec,
  TrainingEngine,
  TrainingGroup,
} from "../engine.ts";
import { adamStep, freshAdam, norm } from "./adam.ts";
import { embeddedCodec } from "./codec.ts";
import { floats, type Graphs, openGraphs } from "./graphs.ts";
import { type ModelShape, parameterCount, readManifest, readVerified } from "./manifest.ts";
import { checkGroupSize, checkGroups, checkPrompt, packGroups, unpackLogprobs } from "./pack.ts";
import { decodeBatch } from "./sampler.ts";
import { decodeFloats, decodeState, encodeState } from "./state.ts";

/** Rows (prompts × completions) that go through a graph at once; bounds memory and does not change what comes out. */
const ROWS_PER_BATCH = 256;
const CROSS_ENTROPY: Loss = { kind: "cross-entropy" };

export interface EmbeddedEngineOptions {
  /** Threads inside one operator. Default 1: it wastes nothing and is fastest where other work runs beside it. */
  readonly threads?: number;
  /** Weights to start from; the shipped warm start where absent. */
  readonly weights?: Float32Array;
  /** Folder of manifest, graphs and weights; data/embedded where absent. */
  readonly folder?: string;
}

/** The embedded engine: a tiny causal transformer, trained and sampled in this process by onnxruntime. */
export interface EmbeddedEngine extends TrainingEngine {
  readonly codec: TeacherCodec;
  readonly model: ModelShape;
}

/**
 * Opens the embedded engine with fresh Adam moments.
 *
 * Calls are taken one after the other, so a sample never sees half an update. The same calls give the same bits.
 * @throws RootstepError FILE_MISSING, DATA_INVALID, DATA_CHECKSUM, CHECKPOINT_CORRUPT
 */
export async function openEmbeddedEngine(options: EmbeddedEngineOptions = {}): Promise<EmbeddedEngine> {
  const folder = options.folder ?? shippedPath("data", "embedded");
  const manifest = await readManifest(folder);
  const { model } = manifest;
  const size = parameterCount(model);
  let weights: Float32Array = Float32Array.from(options.weights ?? (await shippedWeights()));
  if (weights.length !== size) {
    throw new RootstepError("CHECKPOINT_CORRUPT", {
      what: `${weights.length} weights, the embedded model has ${size}`,
    });
  }
  let adam = freshAdam(size);
  let gradient: Float32Array = new Float32Array(size);
  const graphs = openGraphs(folder, manifest, options.threads ?? 1);
  const exclusive = pLimit(1);

  /** @param policy called when it is this sample's turn: calls before it may still change the weights */
  const sample = (request: SampleRequest, policy: () => Float32Array): Promise<Completion[][]> =>
    exclusive(async () => {
      checkGroupSize(request.n, model, "sample");
      request.prompts.forEach((prompt, p) => {
        checkPrompt(prompt, p, model);
      });
      const held = policy();
      const completions: Completion[][] = [];
      for (const prompts of inBatches(request.prompts, request.n === 1 ? 1 : model.groupSize)) {
        const batch = { prompts, offset: completions.length };
        completions.push(...(await decodeBatch(graphs, model, held, batch, request)));
      }
      return completions;
    });

  async function shippedWeights(): Promise<Float32Array> {
    if (manifest.weights === undefined) {
      throw new RootstepError("DATA_INVALID", { what: "the manifest names no weights", where: folder });
    }
    return decodeFloats(await readVerified(folder, manifest.weights), size, manifest.weights.file);
  }

  return {
    id: "embedded",
    codec: embeddedCodec,
    model,
    limits: { maxPrompt: model.maxPrompt, maxCompletion: model.maxCompletion, groupSize: model.groupSize },

    sample: (request) => sample(request, () => weights),

    // Updates write into the weights in place: a sampler beside them gets a copy. Calls still take turns in this one process, so
    // overlap wins no time here; it is there to be the same as on servers, bit for bit repeatable.
    frozenSampler: () =>
      exclusive(async () => {
        const frozen = weights.slice();
        return { id: "embedded", sample: (request: SampleRequest) => sample(request, () => frozen) };
      }),

    forward: (groups) =>
      exclusive(async () => {
        checkGroups(groups, CROSS_ENTROPY, model);
        const runs = await runTraining(graphs, model, weights, groups, CROSS_ENTROPY);
        return runs.flatMap((run) => run.logprobs);
      }),

    forwardBackward: (groups, loss) =>
      exclusive(async () => {
        checkGroups(groups, loss, model);
        const runs = await runTraining(graphs, model, weights, groups, loss);
        const total = runs.reduce((sum, run) => sum + run.loss, 0);
        if (!Number.isFinite(total)) throw new RootstepError("ENGINE_NAN", { what: `the loss is ${total}` });
        for (const run of runs) addInto(gradient, run.gradient);
        return { loss: total, logprobs: runs.flatMap((run) => run.logprobs) };
      }),

    optimStep: (settings) =>
      exclusive(async () => {
        const gradNorm = norm(gradient);
        if (!Number.isFinite(gradNorm)) {
          gradient = new Float32Array(size);
          throw new RootstepError("ENGINE_NAN", { what: `the gradient's norm is ${gradNorm}; weights are unchanged` });
        }
        adamStep(weights, gradient, gradNorm, adam, settings);
        gradient = new Float32Array(size);
        return { gradNorm };
      }),

    exportState: () => exclusive(async () => encodeState(weights, adam)),

    importState: (state: EngineState) =>
      exclusive(async () => {
        const decoded = decodeState(state, size);
        weights = decoded.weights;
        adam = decoded.adam ?? freshAdam(size);
        gradient = new Float32Array(size);
      }),

    close: () => exclusive(() => graphs.release()),
  };
}

interface TrainingRun {
  readonly loss: number;
  readonly gradient: Float32Array;
  readonly logprobs: number[][][];
}

/** Runs groups through a training graph in batches, in order. Groups of one take the graph without sharing. */
async function runTraining(
  graphs: Graphs,
  model: ModelShape,
  weights: Float32Array,
  groups: readonly TrainingGroup[],
  loss: Loss,
): Promise<TrainingRun[]> {
  const n = groups.every((group) => group.completions.length === 1) ? 1 : model.groupSize;
  const runs: TrainingRun[] = [];
  for (const batch of inBatches(groups, n)) {
    const flat = floats(weights, [weights.length]);
    const outputs = await graphs.run(n === 1 ? "train1" : "train", { flat, ...packGroups(batch, n, loss, model) });
    runs.push({
      loss: outputs("loss")[0] ?? Number.NaN,
      gradient: outputs("gradient"),
      logprobs: unpackLogprobs(batch, n, outputs("logprob"), model),
    });
  }
  return runs;
}

function inBatches<T>(items: readonly T[], rowsEach: number): T[][] {
  const size = Math.max(1, Math.floor(ROWS_PER_BATCH / rowsEach));
  const count = Math.ceil(items.length / size);
  return Array.from({ length: count }, (_, i) => items.slice(i * size, (i + 1) * size));
}

function addInto(sum: Float32Array, part: Float32Array): void {
  for (let i = 0; i < sum.length; i += 1) sum[i] = (sum[i] ?? 0) + (part[i] ?? 0);
}
