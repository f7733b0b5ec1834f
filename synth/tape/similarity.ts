/**
 * How alike two texts are: the Dice coefficient of their words as multisets, 0 (no word in common) to 1 (the same words).
 * Linear in their lengths, where an edit distance of two long prompts would take seconds.
 */
export function similarity(a: string, b: string): number {
  const counts = new Map<string, number>();
  const [wordsA, wordsB] = [words(a), words(b)];
  for (const word of wordsA) counts.set(word, (counts.get(word) ?? 0) + 1);
  let common = 0;
  for (const word of wordsB) {
    const left = counts.get(word) ?? 0;
    if (left === 0) continue;
    counts.set(word, left - 1);
    common++;
  }
  const total = wordsA.length + wordsB.length;
  return total === 0 ? 1 : (2 * common) / total;
}

const words = (text: string): readonly string[] => text.match(/[\p{L}\p{N}]+|[^\s\p{L}\p{N}]/gu) ?? [];
