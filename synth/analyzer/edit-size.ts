const TOKEN = /[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu;

/** Words, numbers and signs: what an edit is counted in. */
export const tokensOf = (text: string): readonly string[] => text.match(TOKEN) ?? [];

/** Longer texts are compared by their first so many tokens: the distance takes the product of both lengths. */
const MOST_TOKENS = 4000;

/**
 * How invasive an edit is: the Levenshtein distance over tokens, divided by the longer length. 0 for the same tokens, 1 where
 * none is kept in its place.
 */
export function editShare(before: string, after: string): number {
  const [a, b] = [tokensOf(before).slice(0, MOST_TOKENS), tokensOf(after).slice(0, MOST_TOKENS)];
  const longer = Math.max(a.length, b.length);
  return longer === 0 ? 0 : levenshtein(a, b) / longer;
}

/** Fewest insertions, deletions and substitutions that make one list the other (Wagner & Fischer 1974, two rows). */
export function levenshtein(a: readonly string[], b: readonly string[]): number {
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (const [row, token] of a.entries()) {
    const current = [row + 1];
    for (const [column, other] of b.entries()) {
      const substituted = (previous[column] ?? 0) + Number(token !== other);
      current.push(Math.min(substituted, (previous[column + 1] ?? 0) + 1, (current[column] ?? 0) + 1));
    }
    previous = current;
  }
  return previous[b.length] ?? 0;
}

/** Length of both texts less their common beginning and end, in characters. */
export function editSize(before: string, after: string): number {
  const shorter = Math.min(before.length, after.length);
  let head = 0;
  while (head < shorter && before[head] === after[head]) head++;
  let tail = 0;
  while (tail < shorter - head && before.at(-1 - tail) === after.at(-1 - tail)) tail++;
  return before.length + after.length - 2 * (head + tail);
}
