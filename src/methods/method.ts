import type { z } from "zod";
import { RootstepError } from "../errors.ts";
import type { ChatModel } from "../models/chat-model.ts";
import type { Usage } from "../trajectory/schema.ts";
import type { MethodView } from "./view.ts";

/** How the answer was read from the model's output; `computed` where no model was asked, `none` where nothing was read. */
export const PARSE_PATHS = [
  "computed",
  "format-gate",
  "answer-tag",
  "json",
  "labelled-lines",
  "markdown",
  "prose",
  "none",
] as const;
export type ParsePath = (typeof PARSE_PATHS)[number];

/** What of a log did not fit into a prompt; of several prompts, the one that lost most. */
export interface LogCut {
  readonly stepsCut: number;
  /** Characters left out, of this many in all. */
  readonly charactersCut: number;
  readonly charactersTotal: number;
  /** True where step headers alone exceed the budget: they are kept all the same. */
  readonly overBudget: boolean;
}

export interface Evidence {
  /** 0-based step the remark is about, where there is one. */
  readonly step?: number;
  readonly text: string;
}

/** A method's claim about a run. `null` stands for "no answer", which is counted as wrong. */
export interface Attribution {
  readonly agent: string | null;
  /** 0-based. */
  readonly step: number | null;
  readonly confidence?: number;
  /** Candidates, best first. */
  readonly ranking?: readonly { readonly agent: string; readonly step: number; readonly score: number }[];
  readonly evidence: readonly Evidence[];
  /** Model calls that were answered, and their tokens where the server reports them for every call. */
  readonly calls: number;
  readonly usage?: Usage;
  readonly rawOutput?: string;
  readonly parsePath: ParsePath;
  /** Why agent or step could not be read. */
  readonly parseFailure?: string;
  /** True where every answer was read and none named a step: the method's own result, still no hit, but no parse failure. */
  readonly noStepNamed?: true;
  /** How many different answers the output held; the last one counts. */
  readonly answers?: number;
  readonly cut?: LogCut;
}

/** A trained tracer that is no chat model: the embedded engine's policy, say. Returns the raw `<think>…` output. */
export interface TracerPolicy {
  readonly id: string;
  predict(
    view: MethodView,
    options: { readonly epoch: number; readonly seed: number | string; readonly signal?: AbortSignal },
  ): Promise<string>;
  /** What of the log did not fit into the prompt; absent where a policy cuts nothing. */
  cutOf?(view: MethodView): LogCut | undefined;
}

/** What a method may use. */
export interface MethodContext {
  readonly model?: ChatModel;
  readonly policy?: TracerPolicy;
  readonly seed: number | string;
  /** 0-based repetition; part of every cache key and random stream. */
  readonly epoch: number;
  readonly signal?: AbortSignal;
}

/** What one run of a method over one log will ask for, before it is run. */
export interface MethodPlan {
  readonly calls: { readonly low: number; readonly expected: number; readonly high: number };
  /** Characters over the prompts of all expected calls. */
  readonly promptCharacters: number;
  /** Most completion tokens over all calls. */
  readonly completionTokensLimit: number;
}

/** A method with its options set. */
export interface ConfiguredMethod {
  readonly id: string;
  readonly title: string;
  readonly needs: { readonly model: boolean };
  readonly options: Readonly<Record<string, unknown>>;
  plan(view: MethodView): MethodPlan;
  /** @throws RootstepError MODEL_*, BUDGET_REACHED, INTERRUPTED; CONFIG_INVALID without a needed model */
  attribute(view: MethodView, context: MethodContext): Promise<Attribution>;
}

/** One way to attribute a failure. None knows another; shared steps live in methods/shared. */
export interface AttributionMethod {
  readonly id: string;
  readonly title: string;
  readonly needs: { readonly model: boolean };
  readonly optionsSchema: z.ZodType;
  /** @throws RootstepError CONFIG_INVALID naming the option */
  configure(options?: unknown): ConfiguredMethod;
}

interface MethodDefinition<Options extends Readonly<Record<string, unknown>>> {
  readonly id: string;
  readonly title: string;
  readonly needs: { readonly model: boolean };
  readonly optionsSchema: z.ZodType<Options>;
  readonly plan: (view: MethodView, options: Options) => MethodPlan;
  readonly attribute: (view: MethodView, options: Options, context: MethodContext) => Promise<Attribution>;
}

export const NO_CALLS: MethodPlan = {
  calls: { low: 0, expected: 0, high: 0 },
  promptCharacters: 0,
  completionTokensLimit: 0,
};

/** Makes a method of its parts; options are parsed once, in `configure`. */
export function defineMethod<Options extends Readonly<Record<string, unknown>>>(
  definition: MethodDefinition<Options>,
): AttributionMethod {
  const { id, title, needs, optionsSchema } = definition;
  return {
    id,
    title,
    needs,
    optionsSchema,
    configure: (raw = {}) => {
      const parsed = optionsSchema.safeParse(raw);
      if (!parsed.success) {
        const issue = parsed.error.issues[0];
        throw new RootstepError("CONFIG_INVALID", {
          what: issue?.message ?? "invalid options",
          where: [`method ${id}`, ...(issue?.path ?? [])].join("."),
          cause: parsed.error,
        });
      }
      const options = parsed.data;
      return {
        id,
        title,
        needs,
        options,
        plan: (view) => definition.plan(view, options),
        attribute: (view, context) => definition.attribute(view, options, context),
      };
    },
  };
}

/** The model of a context. @throws RootstepError CONFIG_INVALID where there is none */
export function requireModel(context: MethodContext, methodId: string): ChatModel {
  if (context.model !== undefined) return context.model;
  throw new RootstepError("CONFIG_INVALID", { what: `method ${methodId} asks a model and none is configured` });
}
