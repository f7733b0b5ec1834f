import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { clusteredMean, clusteredMeans, pairedBootstrap } from "../../src/evaluation/bootstrap.ts";
import { mcNemarExact, wilsonInterval } from "../../src/evaluation/statistics.ts";

describe("Wilson interval, against statsmodels 0.15.0 proportion_confint(method='wilson')", () => {
  it.each([
    [34, 126, 0.1999984809546489, 0.3533029026958868],
    [9, 58, 0.08384491953018038, 0.26933980859892515],
    [0, 58, 0, 0.06211785578720294],
    [58, 58, 0.9378821442127971, 1],
    [1, 1, 0.2065493143772374, 1],
    [1, 126, 0.0014023650608123127, 0.04358679998516078],
    [33, 58, 0.44118104569962746, 0.6881820086745516],
    [1200, 2476, 0.46500655705804284, 0.5043463224457371],
  ])("%i of %i", (hits, n, low, high) => {
    const interval = wilsonInterval(hits, n);
    expect(interval.low).toBeCloseTo(low, 12);
    expect(interval.high).toBeCloseTo(high, 12);
  });

  it("refuses a share of nothing", () => {
    expect(() => wilsonInterval(0, 0)).toThrow(RangeError);
    expect(() => wilsonInterval(3, 2)).toThrow(RangeError);
  });

  it("contains the share and stays within [0, 1]", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5000 }), fc.nat(), (n, draw) => {
        const hits = draw % (n + 1);
        const { low, high } = wilsonInterval(hits, n);
        expect(low).toBeGreaterThanOrEqual(0);
        expect(high).toBeLessThanOrEqual(1);
        expect(low).toBeLessThanOrEqual(hits / n);
        expect(high).toBeGreaterThanOrEqual(hits / n);
      }),
    );
  });
});

describe("exact McNemar, against statsmodels 0.15.0 mcnemar(exact=True) and scipy 1.17.1 binomtest", () => {
  it.each([
    [0, 0, 1],
    [1, 0, 1],
    [5, 0, 0.0625],
    [10, 3, 0.09228515625],
    [3, 10, 0.09228515625],
    [12, 12, 1],
    [20, 9, 0.06142834573984146],
    [0, 21, 9.5367431640625e-7],
    [700, 600, 0.0060157938610449395],
  ])("%i against %i", (onlyFirst, onlySecond, pValue) => {
    const pairs = [
      ...Array.from({ length: onlyFirst }, () => ({ first: true, second: false })),
      ...Array.from({ length: onlySecond }, () => ({ first: false, second: true })),
      { first: true, second: true },
      { first: false, second: false },
    ];
    const result = mcNemarExact(pairs);
    expect(result).toMatchObject({ onlyFirst, onlySecond });
    expect(Math.abs(result.pValue / pValue - 1)).toBeLessThan(1e-9);
  });
});

describe("cluster bootstrap", () => {
  const clusters = [[1, 1, 0], [0], [1], [1, 0, 1, 1], [0, 0], [1], [0, 1], [1, 1, 1], [0], [0, 0, 1]];
  const values = clusters.flatMap((cluster, i) => cluster.map((value) => ({ value, cluster: `q${i}` })));

  // numpy 2, 2,000,000 resamples of whole clusters: mean .571429, percentiles [.333333, .769231], standard error .110556
  it("agrees with numpy on the mean, the percentiles and the standard error", () => {
    const result = clusteredMean(values, { seed: 1, resamples: 40_000 });
    expect(result).toMatchObject({ clusters: 10, n: 21 });
    expect(result.mean).toBeCloseTo(12 / 21, 12);
    expect(result.interval.low).toBeCloseTo(0.333333, 1);
    expect(Math.abs(result.interval.low - 0.333333)).toBeLessThan(0.012);
    expect(Math.abs(result.interval.high - 0.769231)).toBeLessThan(0.012);
    expect(Math.abs(result.standardError - 0.110556)).toBeLessThan(0.002);
  });

  // scipy 1.17.1 bootstrap(method='percentile', 500,000 resamples): mean .25, [0, .5], standard error .138202
  it("agrees with scipy on paired differences", () => {
    const differences = [0.5, 0, -0.5, 1, 0, 0.5, 0.5, -0.5, 1, 0, 0, 0.5];
    const pairs = differences.map((difference, i) => ({ first: difference, second: 0, cluster: `q${i}` }));
    const result = pairedBootstrap(pairs, { seed: 7, resamples: 40_000 });
    expect(result.mean).toBeCloseTo(0.25, 12);
    expect(Math.abs(result.interval.low - 0)).toBeLessThan(0.045);
    expect(Math.abs(result.interval.high - 0.5)).toBeLessThan(0.045);
    expect(Math.abs(result.standardError - 0.138202)).toBeLessThan(0.002);
  });

  it("gives the same numbers for the same seed in any order of the values, and others for another seed", () => {
    const first = clusteredMean(values, { seed: "s", resamples: 500 });
    expect(clusteredMean([...values].reverse(), { seed: "s", resamples: 500 })).toEqual(first);
    expect(clusteredMean(values, { seed: "t", resamples: 500 })).not.toEqual(first);
  });

  it("counts copies of one question as one piece of evidence", () => {
    const copied = values.flatMap((value) => [value, value, value]);
    const once = clusteredMean(values, { seed: 3, resamples: 2000 });
    const thrice = clusteredMean(copied, { seed: 3, resamples: 2000 });
    expect(thrice.interval.low).toBeCloseTo(once.interval.low, 12);
    expect(thrice.interval.high).toBeCloseTo(once.interval.high, 12);
  });

  it("refuses a mean of nothing", () => {
    expect(() => clusteredMean([], { seed: 1 })).toThrow(RangeError);
  });
});

describe("several columns at once", () => {
  it("gives each column exactly what it would get alone", () => {
    const row = fc.record({ cluster: fc.constantFrom("a", "b", "c", "d"), values: fc.tuple(fc.nat(1), fc.nat(9)) });
    fc.assert(
      fc.property(fc.array(row, { minLength: 1, maxLength: 40 }), fc.nat(), (rows, seed) => {
        const settings = { seed, resamples: 50 };
        const together = clusteredMeans(rows, 2, settings);
        expect(together).toEqual(
          [0, 1].map((column) =>
            clusteredMean(
              rows.map(({ cluster, values }) => ({ cluster, value: values[column]! })),
              settings,
            ),
          ),
        );
      }),
      { numRuns: 50 },
    );
  });

  it("tells columns apart that have one total, spread otherwise over the clusters", () => {
    const rows = [
      { cluster: "a", values: [6, 2, 6] },
      { cluster: "b", values: [0, 2, 0] },
      { cluster: "c", values: [0, 2, 0] },
    ];
    const [together, even, again] = clusteredMeans(rows, 3, { seed: 1, resamples: 200 });
    expect(even!.interval).toEqual({ low: 2, high: 2 });
    expect(together!.interval).toEqual({ low: 0, high: 6 });
    expect(again).toEqual(together);
  });

  it("is the same for rows and for their sums by cluster", () => {
    const row = fc.record({ cluster: fc.constantFrom("a", "b", "c"), values: fc.tuple(fc.nat(1), fc.nat(9)) });
    fc.assert(
      fc.property(fc.array(row, { minLength: 1, maxLength: 40 }), fc.nat(), (rows, seed) => {
        const summed = [...new Set(rows.map(({ cluster }) => cluster))].map((cluster) => {
          const those = rows.filter((one) => one.cluster === cluster);
          const sum = (column: 0 | 1): number => those.reduce((total, { values }) => total + values[column], 0);
          return { cluster, values: [sum(0), sum(1)], count: those.length };
        });
        const settings = { seed, resamples: 50 };
        expect(clusteredMeans(summed, 2, settings)).toEqual(clusteredMeans(rows, 2, settings));
      }),
      { numRuns: 50 },
    );
  });

  it("has no mean of no rows", () => {
    expect(() => clusteredMeans([], 2, { seed: 1 })).toThrow(RangeError);
  });
});
