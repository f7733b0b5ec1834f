import { existsSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { attributeUnlabelled } from "../../synth/dataset/attribute-unlabelled.ts";
import { UNLABELLED_FILE } from "../../synth/dataset/unlabelled-file.ts";
import { EXIT } from "../errors.ts";
import { methodById } from "../methods/registry.ts";
import { createBudget } from "../models/budget.ts";
import { modelConfigSchema, modelFromConfig } from "../models/resolve.ts";
import { command, stringArgument } from "./command.ts";

const settingsSchema = z.strictObject({
  method: z.string().default("all-at-once").describe("attribution method; `rootstep list methods` shows them"),
  options: z.record(z.string(), z.unknown()).default({}).describe("options of the method"),
  model: modelConfigSchema.optional().describe("what the method asks"),
  seed: z.number().int().default(0).describe("seed of random methods"),
  maxCalls: z.number().int().positive().optional().describe("hard cap on model calls"),
  maxCost: z.number().positive().optional().describe("hard cap on money, in the currency of model.prices"),
});

/** `synth prior`: attributes the failed runs that got no label, as a prior for another search. */
export const synthPrior = command<z.infer<typeof settingsSchema>>({
  name: "synth prior",
  describe: "have a method attribute the failed runs without a label; the file is a --prior of synth run",
  schema: settingsSchema,
  arguments: [
    { name: "folder", describe: "run folder of synth run", type: "string", positional: true, required: true },
    { name: "out", describe: "predictions file (.jsonl); running again goes on", type: "string", required: true },
  ],
  examples: [
    "synth prior runs/gsm8k --out prior.jsonl --model.provider openai-compatible --model.base-url http://127.0.0.1:8000/v1 --model.model Qwen3-8B",
    "synth prior runs/gsm8k --method floor-last-step --out prior.jsonl",
  ],
  async run({ method, options, model, seed, maxCalls, maxCost }, args, context) {
    const folder = stringArgument(args, "folder");
    const file = existsSync(join(folder, UNLABELLED_FILE)) ? join(folder, UNLABELLED_FILE) : folder;
    const out = stringArgument(args, "out");
    const budget = createBudget({ maxCalls, maxCost });
    const counts = await attributeUnlabelled({
      file,
      out,
      method: methodById(method).configure(options),
      ...(model === undefined ? {} : { model: modelFromConfig(model, context.env, { budget }) }),
      seed,
      now: () => context.now().getTime(),
      signal: context.signal,
    });
    const { asked, known, unnamed } = counts;
    context.print(
      counts,
      `${asked} runs attributed, ${known} known before, ${unnamed} of the new ones without an answer: ${out}`,
    );
    return EXIT.ok;
  },
});
