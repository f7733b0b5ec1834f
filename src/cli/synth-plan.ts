import { type SynthConfig, synthConfigSchema } from "../../synth/pipeline/config.ts";
import { type PlannedPart, type PlanOptions, planSynth, type SynthPlan } from "../../synth/plan/plan.ts";
import { requireKnownNames } from "../../synth/synthesize.ts";
import { EXIT, type ExitCode } from "../errors.ts";
import type { Estimate } from "../evaluation/plan.ts";
import { textTable } from "../report/table.ts";
import { type CommandContext, command, optionalNumber } from "./command.ts";

const DEFAULT_LATENCY_MS = 2000;

/** `synth plan`: calls, tokens, money and time of a run before anything is spent. */
export const synthPlan = command<SynthConfig>({
  name: "synth plan",
  describe: "calls, tokens, money and time of a synth run, by strategy; asks no model server",
  schema: synthConfigSchema,
  arguments: [
    { name: "latency-ms", describe: `time of one model call [default: ${DEFAULT_LATENCY_MS}]`, type: "number" },
    { name: "failure-share", describe: "share of the runs that fail, 0–1", type: "number" },
    { name: "steps", describe: "steps of a run, where the simulator cannot play the system", type: "number" },
  ],
  examples: ["synth plan --config configs/synth-math.yaml", "synth plan --tasks.limit 500 --failure-share 0.3"],
  run: (config, args, context) =>
    printSynthPlan(config, context, {
      latencyMs: optionalNumber(args, "latency-ms") ?? DEFAULT_LATENCY_MS,
      failureShare: optionalNumber(args, "failure-share"),
      steps: optionalNumber(args, "steps"),
    }),
});

/** Prints the plan of a run; `synth run --dry-run` does so with the defaults. */
export async function printSynthPlan(
  config: SynthConfig,
  context: CommandContext,
  options: PlanOptions = { latencyMs: DEFAULT_LATENCY_MS },
): Promise<ExitCode> {
  requireKnownNames(config);
  const plan = await planSynth(config, options);
  context.print(plan, renderSynthPlan(plan));
  return EXIT.ok;
}

const ENDS = ["low", "expected", "high"] as const;

function range(value: Estimate | null, show: (end: number) => string = (end) => String(Math.round(end))): string {
  return value === null ? "–" : ENDS.map((end) => show(value[end])).join(" / ");
}

const money = (value: number): string => value.toFixed(2);
const hours = (seconds: number): string =>
  seconds < 120
    ? `${seconds.toFixed(0)} s`
    : seconds < 7200
      ? `${(seconds / 60).toFixed(0)} min`
      : `${(seconds / 3600).toFixed(1)} h`;
const thousands = (tokens: number): string => `${(tokens / 1000).toFixed(0)}k`;

export function renderSynthPlan(plan: SynthPlan): string {
  const { sample, failureShare, caps, total } = plan;
  const cells = (part: Omit<PlannedPart, "part" | "configured" | "units" | "labels" | "callsPerLabel">): string[] => [
    range(part.calls),
    range(part.promptTokens, thousands),
    range(part.completionTokens, thousands),
    range(part.money, money),
    range(part.seconds, hours),
  ];
  const rows = plan.parts.map((part) => [
    part.configured ? part.part : `(${part.part})`,
    ...cells(part),
    range(part.callsPerLabel),
  ]);
  const cap = (value: number | null): string => (value === null ? "none" : String(value));
  const isOver = caps.maxCalls !== null && total.calls.expected > caps.maxCalls;
  const isDear = caps.maxCost !== null && total.money !== null && total.money.expected > caps.maxCost;
  return [
    `${plan.tasks} tasks, ${plan.runs} runs of ${sample.steps.least} to ${sample.steps.most} steps; failing ${range(failureShare, (share) => `${Math.round(100 * share)}%`)} (low / expected / high)`,
    textTable(
      "Plan (low / expected / high); strategies in parentheses are not configured and not in the total",
      ["part", "calls", "prompt tokens", "completion tokens", "money", "time", "calls / label"],
      [...rows, ["total", ...cells(total), ""]],
    ),
    `caps: calls ${cap(caps.maxCalls)}, money ${cap(caps.maxCost)}, live calls of one search ${cap(caps.maxLiveCallsPerRun)}`,
    ...(isOver || isDear ? ["the caps will stop this run before its expected end; running again goes on"] : []),
    ...(total.money === null ? ["money unknown: set prices of each model"] : []),
    ...plan.basis,
    "nothing was run",
  ].join("\n");
}
