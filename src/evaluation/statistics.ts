/** A 95% interval of a proportion, as fractions. */
export interface Interval {
  readonly low: number;
  readonly high: number;
}

/** Φ⁻¹(.975): half-width of a 95% interval in standard errors. */
const Z95 = 1.959963984540054;

/**
 * Wilson score interval, 95%, without continuity correction (Wilson 1927).
 *
 * @throws RangeError unless 0 ≤ hits ≤ n and n > 0
 */
export function wilsonInterval(hits: number, n: number): Interval {
  if (!(n > 0 && hits >= 0 && hits <= n)) throw new RangeError(`no interval for ${hits} of ${n}`);
  const share = hits / n;
  const z2n = (Z95 * Z95) / n;
  const centre = (share + z2n / 2) / (1 + z2n);
  const half = (Z95 / (1 + z2n)) * Math.sqrt((share * (1 - share)) / n + z2n / (4 * n));
  // Exactly 0 and 1 at the ends, where rounding leaves a trace of the other side.
  return { low: hits === 0 ? 0 : centre - half, high: hits === n ? 1 : centre + half };
}

export interface McNemarResult {
  /** Pairs that only the first method gets right. */
  readonly onlyFirst: number;
  readonly onlySecond: number;
  /** Exact two-sided p-value; 1 where no pair differs. */
  readonly pValue: number;
}

/** Exact McNemar test: twice the smaller binomial tail of the discordant pairs at ½, at most 1. */
export function mcNemarExact(pairs: readonly { readonly first: boolean; readonly second: boolean }[]): McNemarResult {
  const onlyFirst = pairs.filter((pair) => pair.first && !pair.second).length;
  const onlySecond = pairs.filter((pair) => pair.second && !pair.first).length;
  const discordant = onlyFirst + onlySecond;
  // Σ_{k ≤ smaller} C(discordant, k) / 2^discordant, in logarithms so that large counts do not underflow.
  let logTerm = -discordant * Math.LN2;
  let tail = Math.exp(logTerm);
  for (let k = 1; k <= Math.min(onlyFirst, onlySecond); k++) {
    logTerm += Math.log((discordant - k + 1) / k);
    tail += Math.exp(logTerm);
  }
  return { onlyFirst, onlySecond, pValue: Math.min(1, 2 * tail) };
}
