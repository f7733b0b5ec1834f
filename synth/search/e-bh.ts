/**
 * e-BH (Wang & Ramdas, "False discovery rate control with e-values", JRSS B 2022, definition 1): of K hypotheses with e-values,
 * reject the k̂ with the largest, k̂ = max{k : k · e₍ₖ₎ / K ≥ 1/α}. FDR ≤ α · K₀/K under any dependence of the e-values.
 *
 * @param eValues one per hypothesis, ≥ 0; also those that were never promising, else the level does not hold
 * @returns for each hypothesis whether it is rejected
 * @throws RangeError for a negative or missing e-value, or an alpha outside (0, 1)
 */
export function eBenjaminiHochberg(eValues: readonly number[], alpha: number): boolean[] {
  if (!(alpha > 0 && alpha < 1)) throw new RangeError(`alpha is between 0 and 1, not ${alpha}`);
  return levelsOf(eValues).map((level) => level <= alpha * (1 + ROUNDING));
}

/**
 * The smallest FDR level at which e-BH rejects each hypothesis: min over k from its rank on of K / (k · e₍ₖ₎), at most 1.
 *
 * @throws RangeError for a negative or missing e-value
 */
export function levelsOf(eValues: readonly number[]): number[] {
  for (const e of eValues) if (!(e >= 0)) throw new RangeError(`an e-value is at least 0, not ${e}`);
  const count = eValues.length;
  const descending = eValues.map((eValue, position) => ({ eValue, position })).sort((a, b) => b.eValue - a.eValue);
  const levels = eValues.map(() => 1);
  let least = 1;
  for (let k = count; k >= 1; k--) {
    const entry = descending[k - 1];
    if (entry === undefined) continue;
    least = Math.min(least, count / (k * entry.eValue));
    levels[entry.position] = least;
  }
  return levels;
}

/** A quotient that is α in exact arithmetic may come out a hair above it. */
const ROUNDING = 1e-12;
