import { stream } from "../../src/random.ts";

/** A mistaken step, as a reader without the label sees it. */
export interface SeenStep {
  readonly task: string;
  readonly content: string;
  readonly agent: string;
  readonly step: number;
  readonly length: number;
}

const count = (text: string, pattern: RegExp): number => text.match(pattern)?.length ?? 0;
const SIGNS = ["+", "-", "*", "/", "=", "(", ".", ",", ":", "[", '"', "`", "#", "<", ">"];

/** What a look at the surface of a step gives: length, digits, punctuation, position, agent. Not what it means. */
export function surfaceOf({ content, agent, step, length }: SeenStep, agents: readonly string[]): number[] {
  const numbers = (content.match(/\d+(?:\.\d+)?/gu) ?? []).map(Number);
  return [
    Math.log1p(content.length),
    Math.log1p(count(content, /\S+/gu)),
    Math.log1p(count(content, /\d/gu)),
    numbers.length,
    Math.log1p(Math.max(0, ...numbers)),
    count(content, /\d\.\d/gu),
    count(content, /(?<![\w)] )-\d/gu),
    Math.log1p(count(content, /\p{Lu}/gu)),
    Math.log1p(count(content, /\n/gu)),
    count(content, / {2}/gu) > 0 ? 1 : 0,
    /[.!?]$/u.test(content) ? 1 : 0,
    ...SIGNS.map((sign) => Math.log1p(content.split(sign).length - 1)),
    step / Math.max(1, length - 1),
    Math.log1p(step),
    Math.log1p(length),
    ...agents.map((name) => Number(name === agent)),
  ];
}

/** Weights of an L2-regularised logistic regression on standardised features, by gradient descent. */
function fitted(rows: readonly (readonly number[])[], labels: readonly number[]): (row: readonly number[]) => number {
  const width = rows[0]?.length ?? 0;
  const columns = Array.from({ length: width }, (_, j) => rows.map((row) => row[j] ?? 0));
  const means = columns.map((column) => column.reduce((a, b) => a + b, 0) / column.length);
  const scales = columns.map((column, j) => {
    const spread = Math.sqrt(column.reduce((sum, x) => sum + (x - (means[j] ?? 0)) ** 2, 0) / column.length);
    return spread < 1e-9 ? 0 : 1 / spread;
  });
  const scaled = (row: readonly number[]) => row.map((x, j) => (x - (means[j] ?? 0)) * (scales[j] ?? 0));
  const inputs = rows.map(scaled);
  const weights = new Float64Array(width);
  let bias = 0;
  const score = (input: readonly number[]) => input.reduce((sum, x, j) => sum + x * (weights[j] ?? 0), bias);
  for (let pass = 0; pass < 300; pass++) {
    const slope = new Float64Array(width);
    let biasSlope = 0;
    inputs.forEach((input, i) => {
      const error = 1 / (1 + Math.exp(-score(input))) - (labels[i] ?? 0);
      input.forEach((x, j) => {
        slope[j] = (slope[j] ?? 0) + error * x;
      });
      biasSlope += error;
    });
    const rate = 0.5 / inputs.length;
    for (let j = 0; j < width; j++) weights[j] = (weights[j] ?? 0) * (1 - 0.5 / inputs.length) - rate * (slope[j] ?? 0);
    bias -= rate * biasSlope;
  }
  return (row) => score(scaled(row));
}

/** P(a random positive scores above a random negative), ties half: Mann–Whitney. */
export function areaUnderCurve(positives: readonly number[], negatives: readonly number[]): number {
  let wins = 0;
  for (const p of positives) for (const n of negatives) wins += p > n ? 1 : p === n ? 0.5 : 0;
  return wins / (positives.length * negatives.length);
}

export interface Separation {
  readonly auc: number;
  /** 95%, by the standard error of Hanley & McNeil (1982). */
  readonly low: number;
  readonly high: number;
}

/** How well a surface classifier tells two kinds of steps apart: AUC of scores from cross-validation, no task in two folds. */
export function separation(first: readonly SeenStep[], second: readonly SeenStep[], seed: number): Separation {
  const FOLDS = 5;
  const all = [...first.map((seen) => ({ seen, label: 1 })), ...second.map((seen) => ({ seen, label: 0 }))];
  const agents = [...new Set(all.map(({ seen }) => seen.agent))].sort();
  const rows = all.map(({ seen, label }) => ({
    label,
    row: surfaceOf(seen, agents),
    fold: stream(seed, "fold", seen.task).int(FOLDS),
  }));
  const scores: { readonly label: number; readonly score: number }[] = [];
  for (let fold = 0; fold < FOLDS; fold++) {
    const others = rows.filter((one) => one.fold !== fold);
    const scoreOf = fitted(
      others.map(({ row }) => row),
      others.map(({ label }) => label),
    );
    for (const { row, label, fold: own } of rows) if (own === fold) scores.push({ label, score: scoreOf(row) });
  }
  const [a, b] = [1, 0].map((label) => scores.filter((one) => one.label === label).map(({ score }) => score));
  const auc = areaUnderCurve(a ?? [], b ?? []);
  const [q1, q2] = [auc / (2 - auc), (2 * auc * auc) / (1 + auc)];
  const [m, n] = [first.length, second.length];
  const variance = (auc * (1 - auc) + (m - 1) * (q1 - auc * auc) + (n - 1) * (q2 - auc * auc)) / (m * n);
  const half = 1.96 * Math.sqrt(variance);
  return { auc, low: auc - half, high: auc + half };
}
