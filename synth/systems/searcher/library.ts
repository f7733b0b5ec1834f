import type { Paragraph } from "../../tasks/hotpotqa/hotpotqa.ts";

/** Searching the paragraphs of one task. */
export interface Library {
  /** The paragraph that fits best: by title, else by the rarer words that it shares with the query. */
  search(query: string): Paragraph | undefined;
  /** Sentences of a paragraph that hold the words. */
  lookup(paragraph: Paragraph, words: string): readonly string[];
}

const TITLE_WEIGHT = 3;

export function createLibrary(paragraphs: readonly Paragraph[]): Library {
  const indexed = paragraphs.map((paragraph) => ({
    paragraph,
    title: new Set(wordsOf(paragraph.title)),
    text: new Set(wordsOf(paragraph.sentences.join(" "))),
  }));
  /** Inverse document frequency: a word that every paragraph has says little. */
  const weightOf = (word: string): number => {
    const having = indexed.filter(({ title, text }) => title.has(word) || text.has(word)).length;
    return having === 0 ? 0 : Math.log(1 + paragraphs.length / having);
  };
  return {
    search(query) {
      const folded = fold(query);
      const exact = paragraphs.find(({ title }) => fold(title) === folded);
      if (exact !== undefined) return exact;
      const words = [...new Set(wordsOf(query))];
      let [best, bestScore]: [Paragraph | undefined, number] = [undefined, 0];
      for (const { paragraph, title, text } of indexed) {
        const score = words.reduce((sum, word) => {
          const place = title.has(word) ? TITLE_WEIGHT : text.has(word) ? 1 : 0;
          return sum + place * weightOf(word);
        }, 0);
        if (score > bestScore) [best, bestScore] = [paragraph, score];
      }
      return best;
    },
    lookup: ({ sentences }, words) => sentences.filter((sentence) => fold(sentence).includes(fold(words))),
  };
}

const fold = (text: string): string => wordsOf(text).join(" ");

function wordsOf(text: string): string[] {
  return (
    text
      .normalize("NFKC")
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu) ?? []
  );
}
