/**
 * An anytime-valid test of two Bernoulli arms (Turner, Ly & Grünwald, "Generic E-variables for exact sequential
 * k-sample tests", 2024): blocks of one treated and one control outcome, the alternative plugged in from the blocks
 * before with a Beta(.18, .18) prior in each arm, the null θ₀ the mean of both. The product over blocks is an e-process
 * under "both arms succeed equally often": P(ever ≥ 1/α) ≤ α, whenever one stops.
 *
 * One-sided: a block whose plug-in does not favour the treated arm bets nothing (factor 1), which keeps validity.
 */
export interface EProcess {
  readonly blocks: number;
  readonly treated: number;
  readonly control: number;
  readonly eValue: number;
}

const PRIOR = 0.18;

export const emptyEProcess: EProcess = { blocks: 0, treated: 0, control: 0, eValue: 1 };

/** Adds one block of outcomes. */
export function addBlock(process: EProcess, treated: boolean, control: boolean): EProcess {
  const mean = (successes: number): number => (successes + PRIOR) / (process.blocks + 2 * PRIOR);
  const [a, b] = [mean(process.treated), mean(process.control)];
  const factor = a <= b ? 1 : likelihoodRatio(a, b, treated, control);
  return {
    blocks: process.blocks + 1,
    treated: process.treated + Number(treated),
    control: process.control + Number(control),
    eValue: process.eValue * factor,
  };
}

function likelihoodRatio(a: number, b: number, treated: boolean, control: boolean): number {
  const pooled = (a + b) / 2;
  const p = (theta: number, outcome: boolean): number => (outcome ? theta : 1 - theta);
  return (p(a, treated) * p(b, control)) / (p(pooled, treated) * p(pooled, control));
}

const GRID = 200;

/**
 * P(θ_treated − θ_control ≥ effect | outcomes) under independent uniform priors, by midpoint sums over both Beta
 * posteriors. Small values make going on futile; stopping for futility costs power, never validity.
 */
export function probabilityOfEffect(process: EProcess, effect: number): number {
  const treated = posterior(process.treated, process.blocks - process.treated);
  const control = posterior(process.control, process.blocks - process.control);
  // P(control ≤ x), summed up along the grid.
  let total = 0;
  let cumulative = 0;
  let reached = 0;
  for (let i = 0; i < GRID; i++) {
    const limit = (i + 0.5) / GRID - effect;
    while (reached < GRID && (reached + 0.5) / GRID <= limit) cumulative += control[reached++] ?? 0;
    total += (treated[i] ?? 0) * cumulative;
  }
  return total;
}

/** Mass of Beta(1 + successes, 1 + failures) on the grid's cells, normalised. */
function posterior(successes: number, failures: number): Float64Array {
  const logs = Float64Array.from({ length: GRID }, (_, i) => {
    const x = (i + 0.5) / GRID;
    return successes * Math.log(x) + failures * Math.log1p(-x);
  });
  const peak = logs.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
  const mass = logs.map((value) => Math.exp(value - peak));
  const sum = mass.reduce((a, b) => a + b, 0);
  return mass.map((value) => value / sum);
}
