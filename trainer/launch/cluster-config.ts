import { z } from "zod";

const count = z.number().int().positive();
const positive = z.number().positive();
const variable = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "must be the NAME of an environment variable");

/** Sizes of a dense decoder with grouped-query attention, as its config.json names them. */
export const modelSizesSchema = z.strictObject({
  hidden: count,
  layers: count,
  heads: count,
  kvHeads: count,
  headDim: count,
  mlp: count,
  vocabulary: count,
  tiedEmbeddings: z.boolean().default(false),
});
export type ModelSizes = z.infer<typeof modelSizesSchema>;

/** From the models' own config.json. */
export const MODEL_SIZES: Readonly<Record<string, ModelSizes>> = {
  "qwen3-8b": {
    hidden: 4096,
    layers: 36,
    heads: 32,
    kvHeads: 8,
    headDim: 128,
    mlp: 12_288,
    vocabulary: 151_936,
    tiedEmbeddings: false,
  },
};

/** Where and how `train launch` runs the parts of a training run. */
export const clusterSchema = z
  .strictObject({
    model: z
      .union([z.enum(Object.keys(MODEL_SIZES)), modelSizesSchema])
      .default("qwen3-8b")
      .describe("sizes of the model, for the memory estimate: a known name or the numbers of its config.json"),
    gpuMemoryGB: positive.default(80).describe("memory of one GPU (H100: 80)"),
    gpuTeraflops: positive.default(989).describe("dense bf16 teraflops of one GPU (H100 SXM: 989)"),
    gpusPerNode: count.default(8).describe("GPUs of one node"),
    engineGpus: count.default(4).describe("GPUs of the training engine, on the first node"),
    rolloutGpus: count.default(4).describe("GPUs of all vLLM servers together"),
    tensorParallel: count.default(1).describe("GPUs of one vLLM server"),
    shared: z.boolean().default(false).describe("engine and vLLM stand on the same GPUs"),
    gpuMemoryUtilization: z.number().gt(0).lt(1).default(0.9).describe("share of a GPU's memory that vLLM takes"),
    parameters: z.enum(["full", "lora"]).default("lora").describe("what is trained"),
    microBatchTokens: count
      .optional()
      .describe("tokens of one pass of the engine; default: one prompt with its answer"),
    modelFlopsUtilization: z.number().gt(0).max(1).default(0.35).describe("assumed share of the peak while training"),
    rolloutTokensPerSecond: positive.default(2_500).describe("assumed tokens a second sampled by one GPU"),
    engineCommand: z
      .string()
      .default(
        "python -m skyrl.tinker.api --base-model {model} --backend fsdp --host 127.0.0.1 --port {port} --checkpoints-base {state}/checkpoints --database-url sqlite:///{state}/tinker.db",
      )
      .describe("starts the training engine; {model}, {port} and {state} are filled in"),
    rolloutCommand: z
      .string()
      .default(
        "env VLLM_ALLOW_RUNTIME_LORA_UPDATING=True vllm serve {model} --served-model-name {served} --host {host} --port {port} --tensor-parallel-size {tensorParallel} --gpu-memory-utilization {gpuMemoryUtilization} --max-model-len {maxLength} --logprobs-mode processed_logprobs --enable-lora --max-lora-rank {loraRank}",
      )
      .describe("starts one vLLM server; the names in braces are filled in"),
    setup: z.string().default("").describe("shell lines before anything else: modules, a virtual environment"),
    container: z.string().optional().describe("image for srun --container-image (pyxis) and for KubeRay"),
    readyMinutes: count.default(30).describe("minutes until servers that are not ready end the job"),
    slurm: z
      .strictObject({
        partition: z.string().optional(),
        account: z.string().optional(),
        time: z.string().default("24:00:00").describe("time limit of the job"),
        extra: z.array(z.string()).default([]).describe("further #SBATCH lines, such as --constraint=hbm3"),
      })
      .prefault({}),
    ray: z
      .strictObject({
        address: z.url().default("http://127.0.0.1:8265").describe("dashboard of the Ray cluster"),
        tokenEnv: variable.default("RAY_AUTH_TOKEN").describe("variable with the cluster's token"),
      })
      .prefault({}),
    kuberay: z
      .strictObject({
        namespace: z.string().default("default"),
        rayVersion: z.string().default("2.60.0"),
        volumeClaim: z.string().default("rootstep").describe("claim of the volume that all pods share"),
      })
      .prefault({}),
  })
  .describe("where train launch runs the parts; train run takes no notice of it");
export type ClusterConfig = z.infer<typeof clusterSchema>;
