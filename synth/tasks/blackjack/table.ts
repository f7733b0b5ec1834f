import { type Card, handValue, isBlackjack, withCard } from "./cards.ts";
import { type Action, legalActions, type Situation } from "./expected-value.ts";

/** A decision that was made at the table. */
export interface Decision {
  /** 1-based. */
  readonly handNumber: number;
  readonly situation: Situation;
  readonly action: Action;
}

/** Hands dealt one after the other from a fixed shoe. */
export interface Table {
  /** What is to be decided now; undefined when the session is over. */
  readonly open: (Situation & { readonly handNumber: number; readonly cards: readonly Card[] }) | undefined;
  readonly decisions: readonly Decision[];
  /** @throws RangeError for an action that is not allowed now */
  play(action: Action): void;
}

/**
 * Deals player, dealer, player, dealer (face down); a hand in which either has blackjack is over at once. The dealer draws
 * his cards after the player stands, so the cards of the next hand depend on what was played.
 */
export function createTable(shoe: readonly Card[], hands: number): Table {
  let dealt = 0;
  let handNumber = 0;
  let cards: Card[] = [];
  let dealer: Card[] = [];
  let over = true;
  const decisions: Decision[] = [];

  const draw = (): Card => {
    const card = shoe[dealt++];
    if (card === undefined) throw new RangeError("the shoe is empty");
    return card;
  };
  const deal = (): void => {
    while (over && handNumber < hands) {
      handNumber++;
      const order = [draw(), draw(), draw(), draw()] as const;
      cards = [order[0], order[2]];
      dealer = [order[1], order[3]];
      over = isBlackjack(cards) || isBlackjack(dealer);
    }
  };
  const finish = (): void => {
    over = true;
    let value = handValue(dealer);
    while (handValue(cards).total <= 21 && value.total < 17) value = withCard(value, draw());
    deal();
  };
  deal();

  const table: Table = {
    get open() {
      const up = dealer[0];
      if (over || up === undefined) return undefined;
      return { handNumber, cards, hand: handValue(cards), dealer: up, mayDouble: cards.length === 2 };
    },
    decisions,
    play(action) {
      const { open } = table;
      if (open === undefined) throw new RangeError("the session is over");
      if (!legalActions(open).includes(action))
        throw new RangeError(`${action} is not allowed on ${cards.length} cards`);
      const { hand, dealer: up, mayDouble } = open;
      decisions.push({ handNumber, situation: { hand, dealer: up, mayDouble }, action });
      if (action !== "stand") cards = [...cards, draw()];
      if (action !== "hit" || handValue(cards).total >= 21) finish();
    },
  };
  return table;
}

/** `hand 1: hit, stand; hand 2: double`: what a session's answer looks like. */
export function recordOf(decisions: readonly Decision[]): string {
  const hands = new Map<number, string[]>();
  for (const { handNumber, action } of decisions) hands.set(handNumber, [...(hands.get(handNumber) ?? []), action]);
  return [...hands].map(([hand, actions]) => `hand ${hand}: ${actions.join(", ")}`).join("; ");
}
