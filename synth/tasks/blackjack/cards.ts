import type { RandomStream } from "../../../src/random.ts";

/** A card by what it counts: 1 is an ace, 10 stands for ten, jack, queen and king. */
export type Card = 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10;
export const CARDS: readonly Card[] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];

/** Probability of a card from an infinite deck. */
export const probabilityOf = (card: Card): number => (card === 10 ? 4 : 1) / 13;

export interface HandValue {
  readonly total: number;
  /** True while an ace counts 11. */
  readonly soft: boolean;
}

export function handValue(cards: readonly Card[]): HandValue {
  return cards.reduce(withCard, { total: 0, soft: false });
}

/** A hand with one more card: an ace counts 11 where that does not bust, and falls back to 1 where it must. */
export function withCard({ total, soft }: HandValue, card: Card): HandValue {
  const hasAce = soft || card === 1;
  const low = total - (soft ? 10 : 0) + card; // every ace as 1
  return hasAce && low + 10 <= 21 ? { total: low + 10, soft: true } : { total: low, soft: false };
}

export const isBlackjack = (cards: readonly Card[]): boolean => cards.length === 2 && handValue(cards).total === 21;

export const nameOf = (card: Card): string => (card === 1 ? "A" : String(card));

export function cardOf(name: string): Card | undefined {
  const value = name === "A" ? 1 : Number(name);
  return CARDS.find((card) => card === value);
}

/** Six shuffled decks. */
export function shuffledShoe(random: RandomStream): Card[] {
  const deck: readonly Card[] = [...CARDS, 10, 10, 10];
  const suits = Array.from({ length: 4 * 6 }, () => deck).flat();
  return random.shuffle(suits);
}
