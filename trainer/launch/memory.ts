import { type ClusterConfig, MODEL_SIZES, type ModelSizes } from "./cluster-config.ts";

const GB = 1e9;
/** CUDA context, communication buffers and fragmentation of one process, in bytes. */
const OVERHEAD = 4 * GB;

/** What one GPU holds, in bytes. */
export interface MemoryEstimate {
  readonly parts: readonly { readonly name: string; readonly bytes: number; readonly formula: string }[];
  readonly total: number;
  readonly available: number;
}

/** Lengths of the run, in tokens. */
export interface RunLengths {
  readonly maxPrompt: number;
  readonly maxCompletion: number;
  readonly loraRank: number;
}

export function sizesOf({ model }: Pick<ClusterConfig, "model">): ModelSizes {
  const sizes = typeof model === "string" ? MODEL_SIZES[model] : model;
  if (sizes === undefined) throw new RangeError(`no sizes are known for ${String(model)}`);
  return sizes;
}

/** Parameters of a dense decoder: embeddings, attention with grouped queries, gated MLP, norms. */
export function parameterCount(sizes: ModelSizes): number {
  const { hidden, layers, heads, kvHeads, headDim, mlp, vocabulary, tiedEmbeddings } = sizes;
  const attention = 2 * hidden * heads * headDim + 2 * hidden * kvHeads * headDim;
  const norms = 2 * hidden + 2 * headDim;
  const perLayer = attention + 3 * hidden * mlp + norms;
  return layers * perLayer + vocabulary * hidden * (tiedEmbeddings ? 1 : 2) + hidden;
}

/** Parameters of LoRA adapters on all seven linear maps of a layer: r · (in + out) each. */
export function loraParameterCount(sizes: ModelSizes, rank: number): number {
  const { hidden, layers, heads, kvHeads, headDim, mlp } = sizes;
  const q = hidden + heads * headDim;
  const kv = hidden + kvHeads * headDim;
  return layers * rank * (2 * q + 2 * kv + 3 * (hidden + mlp));
}

/** Bytes of keys and values per token, in 2-byte numbers. */
export function kvBytesPerToken({ layers, kvHeads, headDim }: ModelSizes): number {
  return 2 * layers * kvHeads * headDim * 2;
}

/**
 * Memory of one GPU of the training engine.
 *
 * Full training, sharded over the engine's GPUs: bf16 weights 2, bf16 gradients 2, fp32 master weights 4 and Adam's two
 * moments 8 bytes per parameter. LoRA: frozen bf16 weights, the same 16 bytes per adapter parameter. Activations with full
 * recomputation: the input of every layer, and one layer's working set of 34 bytes per hidden unit (Korthikanti et al. 2022,
 * without attention scores, which flash attention does not keep). Logits of the answer in fp32, with their gradient.
 */
export function engineMemory(cluster: ClusterConfig, lengths: RunLengths): MemoryEstimate {
  const sizes = sizesOf(cluster);
  const P = parameterCount(sizes);
  const { engineGpus } = cluster;
  const tokens = cluster.microBatchTokens ?? lengths.maxPrompt + lengths.maxCompletion;
  const answer = Math.min(tokens, lengths.maxCompletion);
  const trained = cluster.parameters === "full" ? P : loraParameterCount(sizes, lengths.loraRank);
  const parts = [
    { name: "weights", bytes: (2 * P) / engineGpus, formula: "2·P / GPUs" },
    {
      name: "gradients, master weights, Adam",
      bytes: (14 * trained) / engineGpus,
      formula: `(2 + 4 + 8)·${cluster.parameters === "full" ? "P" : "P_lora"} / GPUs`,
    },
    {
      name: "activations",
      bytes: tokens * sizes.hidden * (2 * sizes.layers + 34),
      formula: "tokens · hidden · (2·layers + 34)",
    },
    { name: "logits", bytes: answer * sizes.vocabulary * 8, formula: "answer tokens · vocabulary · (4 + 4)" },
    { name: "overhead", bytes: OVERHEAD, formula: "4 GB" },
  ];
  return estimate(parts, availableTo(cluster, "engine"));
}

/** Memory of one GPU of a vLLM server; what is left over is its KV cache. */
export function rolloutMemory(
  cluster: ClusterConfig,
  lengths: RunLengths,
): MemoryEstimate & { readonly fullLengthSequences: number } {
  const sizes = sizesOf(cluster);
  const { tensorParallel } = cluster;
  const weights = (2 * parameterCount(sizes)) / tensorParallel;
  const perSequence = (kvBytesPerToken(sizes) * (lengths.maxPrompt + lengths.maxCompletion)) / tensorParallel;
  const available = availableTo(cluster, "rollouts");
  const cache = Math.max(0, available - weights - OVERHEAD);
  const parts = [
    { name: "weights", bytes: weights, formula: "2·P / tensor parallel" },
    { name: "overhead", bytes: OVERHEAD, formula: "4 GB" },
    { name: "one sequence in the KV cache", bytes: perSequence, formula: "4·layers·kv heads·head dim · length / TP" },
  ];
  return { ...estimate(parts, available), fullLengthSequences: Math.floor(cache / perSequence) };
}

function availableTo(cluster: ClusterConfig, side: "engine" | "rollouts"): number {
  const { gpuMemoryGB, gpuMemoryUtilization, shared } = cluster;
  if (side === "rollouts") return gpuMemoryGB * gpuMemoryUtilization * GB;
  return gpuMemoryGB * (shared ? 1 - gpuMemoryUtilization : 1) * GB;
}

function estimate(parts: MemoryEstimate["parts"], available: number): MemoryEstimate {
  return { parts, total: parts.reduce((sum, { bytes }) => sum + bytes, 0), available };
}

/** Seconds of one step: sampling, and passes of the engine at 8 flops per parameter and token (recomputation included). */
export function stepSeconds(
  cluster: ClusterConfig,
  lengths: RunLengths,
  step: { readonly prompts: number; readonly groupSize: number; readonly epochs: number },
): { readonly sampling: number; readonly training: number } {
  const completions = step.prompts * step.groupSize;
  const P = parameterCount(sizesOf(cluster));
  const sampled = completions * lengths.maxCompletion;
  const read = completions * (lengths.maxPrompt + lengths.maxCompletion);
  const flops = 1e12 * cluster.gpuTeraflops * cluster.modelFlopsUtilization;
  // One pass more for the old log-probabilities, at 2 flops.
  const training = (read * P * (8 * step.epochs + 2)) / (flops * cluster.engineGpus);
  const prefill = (step.prompts * lengths.maxPrompt * P * 2) / (flops * cluster.rolloutGpus);
  return { sampling: sampled / (cluster.rolloutTokensPerSecond * cluster.rolloutGpus) + prefill, training };
}
