import { z } from "zod";
import { RootstepError } from "../errors.ts";
import { methodById } from "../methods/registry.ts";
import { type ModelConfig, modelConfigSchema } from "../models/resolve.ts";
import { dataChoiceSchema } from "./data.ts";
import { WHO_AND_WHEN_CHOICES } from "./datasets.ts";

const count = z.number().int().positive();

/** Settings of one run: one method, one model, one set. */
export const evalConfigSchema = z.strictObject({
  method: z.string().describe("attribution method; `rootstep list methods` shows them"),
  options: z.record(z.string(), z.unknown()).default({}).describe('options of the method, as YAML: "{step: 4}"'),
  data: dataChoiceSchema.prefault({}),
  withReference: z.boolean().default(false).describe('show the reference answer to the method (the papers\' "w/ G")'),
  epochs: count.default(1).describe("repetitions per log"),
  limit: count.optional().describe("only the first so many logs"),
  seed: z.number().int().default(0).describe("seed of random methods and bootstraps"),
  model: modelConfigSchema.optional().describe("model server to ask"),
  checkpoint: z.string().optional().describe("for method tracer: a training run or checkpoint of the embedded engine"),
  concurrency: count.default(4).describe("logs worked on at the same time"),
  maxCalls: count.optional().describe("hard cap on model calls of this invocation, over a matrix in all"),
  maxCost: z
    .number()
    .positive()
    .optional()
    .describe("hard cap on money, in the currency of model.prices, over a matrix in all"),
});
export type EvalConfig = z.infer<typeof evalConfigSchema>;

const methodEntrySchema = z.strictObject({
  method: z.string(),
  options: z.record(z.string(), z.unknown()).default({}),
  /** Its own folder name, where one method stands in the list twice. */
  name: z
    .string()
    .regex(/^[\w.-]+$/u, "must be a folder name")
    .optional(),
  checkpoint: z.string().optional(),
});

/**
 * A configuration file: one run, or a matrix of runs. Lists multiply: `methods` × `models` × `subsets` × `withReference`;
 * methods that ask no model are run once per subset.
 */
export const evalFileSchema = evalConfigSchema.partial({ method: true }).extend({
  withReference: z.union([z.boolean(), z.array(z.boolean()).min(1)]).default(false),
  methods: z.array(methodEntrySchema).min(1).optional(),
  models: z.array(modelConfigSchema).min(1).optional(),
  subsets: z.array(z.enum(WHO_AND_WHEN_CHOICES)).min(1).optional(),
});
export type EvalFile = z.infer<typeof evalFileSchema>;

/** One run of a matrix. */
export interface MatrixRun {
  /** Folder below the matrix' own. */
  readonly name: string;
  readonly config: EvalConfig;
}

/** True where the file asks for several runs. */
export function isMatrix(file: EvalFile): boolean {
  const { methods, models, subsets, withReference } = file;
  return methods !== undefined || models !== undefined || subsets !== undefined || Array.isArray(withReference);
}

/** The one run of a file that is no matrix. @throws RootstepError CONFIG_INVALID where it names no method */
export function singleRun(file: EvalFile): EvalConfig {
  if (file.method === undefined)
    throw invalid("method: no method is named", "setting method (flag --method or ROOTSTEP_EVAL_METHOD)");
  const { methods, models, subsets, withReference, method, ...rest } = file;
  return { ...rest, method, withReference: withReference === true };
}

/**
 * The runs of a matrix, in the order of its lists: methods outermost.
 * @throws RootstepError CONFIG_INVALID (a list and its single form at once; no method; two runs of one name), UNKNOWN_NAME
 */
export function matrixRuns(file: EvalFile): MatrixRun[] {
  const { methods, models, subsets, withReference, method, options, model, checkpoint, data, ...common } = file;
  if (methods !== undefined && method !== undefined)
    throw invalid("method and methods are both given", "setting methods");
  if (models !== undefined && model !== undefined) throw invalid("model and models are both given", "setting models");
  const entries = methods ?? (method === undefined ? [] : [{ method, options, checkpoint }]);
  if (entries.length === 0) throw invalid("neither method nor methods is given", "setting methods");
  const references = Array.isArray(withReference) ? withReference : [withReference];
  const runs = entries.flatMap((entry): MatrixRun[] => {
    const ownCheckpoint = entry.checkpoint ?? checkpoint;
    const asks = methodById(entry.method).needs.model && ownCheckpoint === undefined;
    const asked: readonly (ModelConfig | undefined)[] = asks ? (models ?? [model]) : [undefined];
    return asked.flatMap((one) =>
      (subsets ?? [data.subset]).flatMap((subset) =>
        // What reads no prompt sees no reference answer: one run says it all.
        (methodById(entry.method).needs.model ? references : [false]).map((shown) => ({
          name: runName(entry, one, models, subset, shown),
          config: {
            ...common,
            method: entry.method,
            options: entry.options,
            data: { ...data, subset },
            withReference: shown,
            ...(one !== undefined && { model: one }),
            ...(ownCheckpoint !== undefined && { checkpoint: ownCheckpoint }),
          },
        })),
      ),
    );
  });
  const names = new Set<string>();
  for (const { name } of runs) {
    if (names.has(name)) {
      throw invalid(
        `two runs of the matrix would be called ${name}`,
        "setting methods",
        "Give the entries a name of their own.",
      );
    }
    names.add(name);
  }
  return runs;
}

function runName(
  entry: { readonly method: string; readonly name?: string | undefined },
  model: ModelConfig | undefined,
  models: readonly ModelConfig[] | undefined,
  subset: string,
  withReference: boolean,
): string {
  const parts = [entry.name ?? entry.method];
  if (model !== undefined) {
    const slug = slugOf(model.model);
    const alike = (models ?? []).filter((other) => slugOf(other.model) === slug);
    parts.push(alike.length > 1 ? `${slug}-${alike.indexOf(model) + 1}` : slug);
  }
  return [...parts, subset, ...(withReference ? ["with-reference"] : [])].join("_");
}

/** `Qwen/Qwen3-8B` → `Qwen3-8B`: what a folder can be called. */
function slugOf(model: string): string {
  const last = model.split("/").at(-1) ?? model;
  return last.replace(/[^\w.-]+/gu, "-").replace(/^[-.]+|-+$/gu, "") || "model";
}

function invalid(what: string, where: string, hint?: string): RootstepError {
  return new RootstepError("CONFIG_INVALID", { what, where, hint });
}
