import type { EvalConfig } from "../evaluation/config.ts";
import type { Estimate, EvaluationPlan } from "../evaluation/plan.ts";
import { textTable } from "../report/table.ts";

/** A run that is planned. */
export interface PlannedRun {
  readonly name: string;
  readonly config: EvalConfig;
  readonly plan: EvaluationPlan;
}

export interface MatrixPlan {
  readonly runs: readonly (Pick<PlannedRun, "name" | "plan"> & { readonly cost: Estimate | null })[];
  readonly predictions: number;
  readonly calls: Estimate;
  readonly promptTokens: Estimate;
  readonly completionTokens: Estimate;
  /** null where a run that asks a model has no price. */
  readonly cost: Estimate | null;
}

const ENDS = ["low", "expected", "high"] as const;

function estimate(of: (end: (typeof ENDS)[number]) => number): Estimate {
  return { low: of("low"), expected: of("expected"), high: of("high") };
}

/** What a run costs; null where its model has no price. */
function costOfPlan({ config, plan }: PlannedRun): Estimate | null {
  if (plan.calls.high === 0) return { low: 0, expected: 0, high: 0 };
  const prices = config.model?.prices;
  if (prices === undefined) return null;
  return estimate(
    (end) => (plan.promptTokens[end] * prices.prompt + plan.completionTokens[end] * prices.completion) / 1e6,
  );
}

/** Sums over the runs of a matrix. */
export function matrixPlan(planned: readonly PlannedRun[]): MatrixPlan {
  const costs = planned.map(costOfPlan);
  const known = costs.filter((cost) => cost !== null);
  const sum = (of: (plan: EvaluationPlan) => Estimate): Estimate =>
    estimate((end) => planned.reduce((total, { plan }) => total + of(plan)[end], 0));
  return {
    runs: planned.map(({ name, plan }, position) => ({ name, plan, cost: costs[position] ?? null })),
    predictions: planned.reduce((total, { plan }) => total + plan.predictions, 0),
    calls: sum((plan) => plan.calls),
    promptTokens: sum((plan) => plan.promptTokens),
    completionTokens: sum((plan) => plan.completionTokens),
    cost: known.length < costs.length ? null : estimate((end) => known.reduce((total, cost) => total + cost[end], 0)),
  };
}

const range = ({ low, expected, high }: Estimate): string => `${low} / ${expected} / ${high}`;
const money = (cost: Estimate): string => ENDS.map((end) => cost[end].toFixed(2)).join(" / ");

/** The plan of one run, for a reader. */
export function renderPlan(config: EvalConfig, plan: EvaluationPlan): string {
  const cost = costOfPlan({ name: config.method, config, plan });
  return [
    `${config.method}: ${plan.items} logs, ${plan.predictions} predictions (low / expected / high)`,
    `calls             ${range(plan.calls)}`,
    `prompt tokens     ${range(plan.promptTokens)}`,
    `completion tokens ${range(plan.completionTokens)}`,
    `cost              ${cost === null ? "unknown: set model.prices" : money(cost)}`,
    plan.basis,
    "nothing was run",
  ].join("\n");
}

/** The plan of a matrix: a line per run, the sum below. */
export function renderMatrixPlan(plan: MatrixPlan): string {
  const costText = (cost: Estimate | null): string => (cost === null ? "unknown" : money(cost));
  const lines = plan.runs.map(({ name, plan: one, cost }) => [
    name,
    String(one.predictions),
    range(one.calls),
    range(one.promptTokens),
    range(one.completionTokens),
    costText(cost),
  ]);
  const total = [
    `${plan.runs.length} runs`,
    String(plan.predictions),
    range(plan.calls),
    range(plan.promptTokens),
    range(plan.completionTokens),
    costText(plan.cost),
  ];
  const basis = plan.runs[0]?.plan.basis;
  return [
    textTable(
      "Plan of the matrix (low / expected / high)",
      ["run", "predictions", "calls", "prompt tokens", "completion tokens", "cost"],
      [...lines, total],
    ),
    ...(plan.cost === null ? ["cost unknown: set prices of each model"] : []),
    ...(basis === undefined ? [] : [basis]),
    "nothing was run",
  ].join("\n");
}
