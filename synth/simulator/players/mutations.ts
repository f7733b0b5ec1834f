import type { RandomStream } from "../../../src/random.ts";

/** Slips that programmers make, as replacements of one place in the code. */
const SLIPS: readonly (readonly [RegExp, (found: string) => string])[] = [
  [/(?<=[\w)\]] )\+(?= [\w(])/gu, () => "-"],
  [/(?<=[\w)\]] )-(?= [\w(])/gu, () => "+"],
  [/(?<=[\w)\]] )\*(?= [\w(])/gu, () => "+"],
  [/ <= /gu, () => " < "],
  [/ < /gu, () => " <= "],
  [/ >= /gu, () => " > "],
  [/ > /gu, () => " >= "],
  [/ == /gu, () => " != "],
  [/ and /gu, () => " or "],
  [/ or /gu, () => " and "],
  [/\bmin\(/gu, () => "max("],
  [/\bmax\(/gu, () => "min("],
  [/\bTrue\b/gu, () => "False"],
  [/\bFalse\b/gu, () => "True"],
  [/(?<![\w.'"])\d{1,3}(?![\w.'"])/gu, (found) => String(Number(found) + 1)],
];

/** Lines whose change may make a loop endless, and the signature. */
const UNTOUCHED = /^\s*(?:while |def |import |from )|[-+*]= /u;

/** The code with one slip in it; undefined where there is no place for one. */
export function mutatePython(code: string, random: RandomStream): string | undefined {
  const lines = code.split("\n");
  const places = lines.flatMap((line, at) => {
    if (UNTOUCHED.test(line)) return [];
    return SLIPS.flatMap(([pattern, replace]) =>
      [...line.matchAll(pattern)].map((found) => ({
        at,
        line: line.slice(0, found.index) + replace(found[0]) + line.slice(found.index + found[0].length),
      })),
    );
  });
  if (places.length === 0) return undefined;
  const chosen = random.pick(places);
  return lines.map((line, at) => (at === chosen.at ? chosen.line : line)).join("\n");
}
