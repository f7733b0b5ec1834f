import { z } from "zod";
import { modelConfigSchema } from "../../src/models/resolve.ts";
import { simulatorConfigSchema } from "../simulator/simulator.ts";

const count = z.number().int().positive();
const probability = z.number().gt(0).lt(1);

/** The simulator, or any model server. */
export const agentModelSchema = z.discriminatedUnion("provider", [simulatorConfigSchema, ...modelConfigSchema.options]);
export type AgentModelConfig = z.infer<typeof agentModelSchema>;

/** Everything that decides what `synth run` makes. */
export const synthConfigSchema = z.strictObject({
  seed: z.number().int().default(1).describe("seed of every random stream of the run"),
  tasks: z
    .strictObject({
      set: z.string().default("gsm8k").describe("task set; `rootstep list tasks` shows them"),
      limit: count.default(100).describe("number of tasks"),
      runs: count.default(1).describe("runs recorded per task"),
      path: z.string().exactOptional().describe("your own copy of the task set, a file or folder; some sets need one"),
    })
    .prefault({}),
  system: z
    .string()
    .default("planner-solver-verifier")
    .describe("multi-agent system; `rootstep list systems` shows them"),
  model: agentModelSchema.prefault({ provider: "simulator" }).describe("plays the agents"),
  analyzer: agentModelSchema.optional().describe("proposes corrections; default: the model that plays the agents"),
  search: z
    .strictObject({
      strategies: z
        .array(z.string())
        .min(1)
        .default(["bayes"])
        .describe("search strategies; labels come from the first, the others run beside it for comparison"),
      maxLiveCalls: count
        .exactOptional()
        .describe(
          "live calls of one failed run after which no rerun begins, what is begun is finished; it stays undecided then",
        ),
      analyzerAttempts: count.default(3).describe("corrections asked for per step before the step is passed over"),
      alpha: probability.default(0.05).describe("bound on claiming an effect that is not there, per step"),
      maxBlocks: count.default(100).describe("treated and control reruns per step at most"),
      minEffect: probability.default(0.2).describe("smallest difference of success probabilities worth finding"),
      prior: z
        .string()
        .exactOptional()
        .describe(
          "where to look first: an attribution method that is asked about each run, or a predictions.jsonl of `eval run`",
        ),
      priorStrength: probability
        .default(0.45)
        .describe("how often the prior's method names the right step; the rest is spread evenly over the other steps"),
      fdr: probability
        .exactOptional()
        .describe("bound on the share of labels without an effect in the data set (e-BH); reruns go on for longer"),
      controlReruns: z
        .number()
        .int()
        .nonnegative()
        .default(0)
        .describe("reruns of the placebo and of the hint arm at each labelled step, for the report"),
      futility: probability.default(0.05).describe("a step is given up when such an effect is less probable than this"),
    })
    .prefault({}),
  inject: z
    .strictObject({
      operator: z
        .string()
        .default("any")
        .describe(
          "perturbation; `any` draws one of those that apply at each point, `none` switches injection off; `rootstep list operators`",
        ),
      points: count.default(3).describe("K, points tried in one successful run"),
      minControlSuccess: probability.default(0.8).describe("lower 95% bound that plain reruns must reach"),
      maxAdmissionReruns: count.default(40).describe("plain reruns before a run is passed over"),
    })
    .prefault({}),
  dataset: z
    .strictObject({
      testShare: z.number().min(0).max(1).default(0.1).describe("share of task groups in the test split"),
    })
    .prefault({}),
  unsafeNoSandbox: z
    .boolean()
    .default(false)
    .describe("run the code that models write without a sandbox: it can then do whatever you can"),
  allowExternal: z
    .boolean()
    .default(false)
    .describe("rerun a system whose side effects are external: every rerun has them again"),
  concurrency: count.default(1).describe("runs worked on at the same time; raise it for remote models"),
  maxCalls: count.optional().describe("hard cap on live model calls of this invocation; finished work is kept"),
  maxCost: z.number().positive().optional().describe("hard cap on money, in the currency of model.prices"),
});
export type SynthConfig = z.infer<typeof synthConfigSchema>;
