import { z } from "zod";
import { tinkerProfiles } from "./engines/tinker/profiles.ts";
import { SYNC_MODES } from "./vllm/weight-sync.ts";

const count = z.number().int().positive();
const url = z.url({ protocol: /^https?$/, error: "must be an http(s) URL" });
const variable = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "must be the NAME of an environment variable, not a key")
  .nullable()
  .default(null);

/** What is trained, and by what: decides the result, so a run folder is only resumed with the same. */
export const engineSchema = z
  .discriminatedUnion("kind", [
    z.strictObject({ kind: z.literal("embedded") }),
    z.strictObject({
      kind: z.literal("tinker"),
      profile: z
        .enum(tinkerProfiles.map(({ id }) => id))
        .describe("the server's kind: encoding, loss reduction and what it can do"),
      baseModel: z.string().min(1).describe("model as the server knows it"),
      modelFolder: z.string().min(1).describe("folder with the model's config.json and tokenizer files"),
      loraRank: count.default(32).describe("rank of the adapters, where the server trains adapters"),
      loraSeed: z.number().int().nonnegative().default(0).describe("seed of the adapters' first weights"),
      maxPrompt: count
        .default(24_576)
        .describe("longest prompt in tokens: longer logs are cut by the step-aware budget"),
      maxCompletion: count.default(4_096).describe("longest answer in tokens"),
      templateOptions: z
        .record(z.string(), z.unknown())
        .default({})
        .describe("options of the model's chat template, such as enable_thinking"),
    }),
  ])
  .prefault({ kind: "embedded" })
  .describe("what updates the policy");

/** What samples, and how it gets the weights. */
export const samplingSchema = z
  .discriminatedUnion("from", [
    z.strictObject({ from: z.literal("engine") }),
    z.strictObject({
      from: z.literal("vllm"),
      model: z.string().min(1).describe("served name of the base model"),
      sync: z
        .enum(SYNC_MODES.filter((mode) => mode !== "engine"))
        .describe(
          "lora: the adapter is loaded while serving; disk: a whole model is read anew; transfer: a whole model by vLLM's weight transfer. Adapters go by lora alone, whole models by disk or transfer",
        ),
      probeTolerance: z
        .number()
        .positive()
        .default(0.05)
        .describe("nats a probe's log-probability may differ between server and engine after a sync"),
    }),
  ])
  .prefault({ from: "engine" })
  .describe("what samples the rollouts");

/** Where the servers are and how they are asked: may change between a run and its continuation. */
export const serversSchema = z
  .strictObject({
    engine: url.optional().describe("address of the training engine, without /api/v1"),
    engineKeyEnv: variable.describe("variable with the engine's key; null sends none"),
    rollouts: z
      .array(url)
      .default([])
      .describe("addresses of the vLLM servers, without /v1; all hold the same weights"),
    rolloutKeyEnv: variable.describe("variable with the servers' key; null sends none"),
    concurrency: count.default(32).describe("groups asked for at the same time, over all servers"),
    attempts: count.default(4).describe("requests for one group in all"),
    requestSeconds: count.default(600).describe("seconds until a vLLM server's answer to one request is given up"),
    resultSeconds: count.default(3_600).describe("seconds until a result of the engine is given up"),
    weightsFolder: z
      .string()
      .optional()
      .describe("folder that the vLLM servers can read, for weights on their way; default: in the run folder"),
    checkpointsFolder: z
      .string()
      .optional()
      .describe(
        "the training server's own folder of checkpoints as seen from here: whole models are too large to download",
      ),
    weightsFolderThere: z.string().optional().describe("the same folder as the servers see it, where that differs"),
  })
  .prefault({})
  .describe("where the servers are");

export type EngineConfig = z.infer<typeof engineSchema>;
export type SamplingConfig = z.infer<typeof samplingSchema>;
export type ServersConfig = z.infer<typeof serversSchema>;
