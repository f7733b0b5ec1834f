/*
 * GAIA's official scorer (gaia-benchmark leaderboard, scorer.py: question_scorer): numbers as numbers, lists element by
 * element, all else as text without white space, case and punctuation.
 */

/** Quasi exact match of an answer with the ground truth. */
export function gaiaMatch(answer: string, truth: string): boolean {
  const number = pythonFloat(truth);
  if (number !== undefined) return normalizedNumber(answer) === number;
  if (!/[,;]/u.test(truth)) return normalizedText(answer, true) === normalizedText(truth, true);
  const [said, wanted] = [answer.split(/[,;]/u), truth.split(/[,;]/u)];
  return (
    said.length === wanted.length &&
    wanted.every((element, at) => {
      const one = said[at] ?? "";
      const value = pythonFloat(element);
      // Elements keep their punctuation: some answers are made of it.
      if (value === undefined) return normalizedText(one, false) === normalizedText(element, false);
      return normalizedNumber(one) === value;
    })
  );
}

/** Without $, % and commas; infinity where that is no number. */
function normalizedNumber(text: string): number {
  return pythonFloat(text.replace(/[$%,]/gu, "")) ?? Infinity;
}

function normalizedText(text: string, dropPunctuation: boolean): string {
  const folded = text.replace(/\s/gu, "").toLowerCase();
  return dropPunctuation ? folded.replace(/[!-/:-@[-`{-~]/gu, "") : folded;
}

const FLOAT = /^[-+]?(?:(?:\d+(?:_\d+)*)?\.\d+(?:_\d+)*|\d+(?:_\d+)*\.?)(?:e[-+]?\d+(?:_\d+)*)?$/iu;

/** What Python's `float()` makes of a text; undefined where it raises. Digits of other scripts, which it takes, are not read. */
function pythonFloat(text: string): number | undefined {
  const trimmed = text.trim();
  if (/^[-+]?inf(?:inity)?$/iu.test(trimmed)) return trimmed.startsWith("-") ? -Infinity : Infinity;
  if (/^[-+]?nan$/iu.test(trimmed)) return Number.NaN;
  return FLOAT.test(trimmed) ? Number(trimmed.replaceAll("_", "")) : undefined;
}
