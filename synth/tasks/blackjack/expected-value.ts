import { CARDS, type Card, type HandValue, probabilityOf, withCard } from "./cards.ts";

/*
 * Expected values under the rules of the table, for an infinite deck: the dealer has no blackjack (he has looked), stands
 * on every 17, double on the first two cards, no split. What basic strategy is made of.
 */

export const ACTIONS = ["hit", "stand", "double"] as const;
export type Action = (typeof ACTIONS)[number];

/** What the player knows when he decides. */
export interface Situation {
  readonly hand: HandValue;
  readonly dealer: Card;
  /** True on the first two cards. */
  readonly mayDouble: boolean;
}

/** Probabilities of the dealer's end: totals 17 to 21, and bust. */
export type DealerEnd = ReadonlyMap<17 | 18 | 19 | 20 | 21 | "bust", number>;

const ends = new Map<string, DealerEnd>();

/** How the dealer ends with that card showing. `peeked`: given that he has no blackjack. */
export function dealerEnd(up: Card, peeked = true): DealerEnd {
  const hole = CARDS.filter((card) => !(peeked && isBlackjackPair(up, card)));
  const all = hole.reduce((sum, card) => sum + probabilityOf(card), 0);
  const first = withCard({ total: 0, soft: false }, up);
  return mixed(hole.map((card) => [probabilityOf(card) / all, dealerFrom(withCard(first, card))]));
}

const isBlackjackPair = (up: Card, hole: Card): boolean => (up === 1 && hole === 10) || (up === 10 && hole === 1);

function dealerFrom(hand: HandValue): DealerEnd {
  const key = `${hand.total}${hand.soft ? "s" : ""}`;
  const known = ends.get(key);
  if (known !== undefined) return known;
  const end = finished(hand) ?? mixed(CARDS.map((card) => [probabilityOf(card), dealerFrom(withCard(hand, card))]));
  ends.set(key, end);
  return end;
}

function finished({ total }: HandValue): DealerEnd | undefined {
  switch (total) {
    case 17:
    case 18:
    case 19:
    case 20:
    case 21:
      return new Map([[total, 1]]);
    default:
      return total > 21 ? new Map([["bust", 1]]) : undefined;
  }
}

function mixed(parts: readonly (readonly [number, DealerEnd])[]): DealerEnd {
  const sum = new Map<17 | 18 | 19 | 20 | 21 | "bust", number>();
  for (const [weight, end] of parts) {
    for (const [total, probability] of end) sum.set(total, (sum.get(total) ?? 0) + weight * probability);
  }
  return sum;
}

function stand(total: number, dealer: Card): number {
  if (total > 21) return -1;
  let value = 0;
  for (const [end, probability] of dealerEnd(dealer)) {
    value += probability * (end === "bust" ? 1 : Math.sign(total - end));
  }
  return value;
}

const best = new Map<string, number>();

/** The best of hit and stand, played on. */
function bestFrom(hand: HandValue, dealer: Card): number {
  if (hand.total > 21) return -1;
  const key = `${hand.total}${hand.soft ? "s" : ""} ${dealer}`;
  const known = best.get(key);
  if (known !== undefined) return known;
  const value = Math.max(stand(hand.total, dealer), hit(hand, dealer));
  best.set(key, value);
  return value;
}

const hit = (hand: HandValue, dealer: Card): number =>
  CARDS.reduce((sum, card) => sum + probabilityOf(card) * bestFrom(withCard(hand, card), dealer), 0);

/** Expected result of an action in bets, the rest played best. */
export function expectedValue(action: Action, { hand, dealer }: Situation): number {
  switch (action) {
    case "stand":
      return stand(hand.total, dealer);
    case "hit":
      return hit(hand, dealer);
    case "double":
      return 2 * CARDS.reduce((sum, card) => sum + probabilityOf(card) * stand(withCard(hand, card).total, dealer), 0);
  }
}

export function legalActions({ mayDouble }: Pick<Situation, "mayDouble">): readonly Action[] {
  return mayDouble ? ACTIONS : ["hit", "stand"];
}

/** Basic strategy. */
export function bestAction(situation: Situation): Action {
  return legalActions(situation).reduce((one, other) =>
    expectedValue(other, situation) > expectedValue(one, situation) ? other : one,
  );
}

/** What an action gives up against the best one, in bets: 0 for the best. */
export function givenUp(action: Action, situation: Situation): number {
  return expectedValue(bestAction(situation), situation) - expectedValue(action, situation);
}
