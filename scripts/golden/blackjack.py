#!/usr/bin/env python3
"""Golden values for tests/synth/tasks/blackjack.test.ts, by another way than synth/tasks/blackjack: exact fractions, hands as
multisets of cards, the dealer's draws enumerated forward. Infinite deck, dealer stands on all 17, no blackjack of his.

    python3 scripts/golden/blackjack.py > tests/synth/tasks/golden/blackjack.json
"""
import json
from fractions import Fraction
from functools import lru_cache

RANKS = ["A", "2", "3", "4", "5", "6", "7", "8", "9", "T", "J", "Q", "K"]


def points(rank):
    return 1 if rank == "A" else 10 if rank in "TJQK" else int(rank)


def total(hand):
    low = sum(points(rank) for rank in hand)
    return low + 10 if "A" in hand and low + 10 <= 21 else low


def is_soft(hand):
    return total(hand) != sum(points(rank) for rank in hand)


def dealer(up, peeked):
    """Forward over all sequences: a list of (hand, probability) that shrinks as hands are finished."""
    pending = []
    for hole in RANKS:
        if peeked and {points(hole), points(up)} == {1, 10}:
            continue
        pending.append(((up, hole), Fraction(1)))
    share = Fraction(1, len(pending))
    pending = {hand: share * weight for hand, weight in pending}
    ends = {}
    while pending:
        following = {}
        for hand, weight in pending.items():
            value = total(hand)
            if value >= 17:
                key = "bust" if value > 21 else str(value)
                ends[key] = ends.get(key, 0) + weight
                continue
            for rank in RANKS:
                # what matters of a hand: its low points and whether it has an ace
                more = canonical((*hand, rank))
                following[more] = following.get(more, 0) + weight / 13
        pending = following
    return ends


def canonical(hand):
    low = sum(points(rank) for rank in hand)
    ace = ("A",) if "A" in hand else ()
    rest = low - len(ace)
    cards = []
    while rest > 0:
        step = min(rest, 10)
        if step == 1 and not ace:
            cards[-1], step = str(points(cards[-1]) - 1), 2
        cards.append("T" if step == 10 else "A" if step == 1 else str(step))
        rest -= step
    return tuple(sorted(ace + tuple(cards)))


ENDS = {up: dealer(up, True) for up in "A23456789T"}


def standing(value, up):
    if value > 21:
        return Fraction(-1)
    won = sum(weight for end, weight in ENDS[up].items() if end == "bust" or int(end) < value)
    lost = sum(weight for end, weight in ENDS[up].items() if end != "bust" and int(end) > value)
    return won - lost


@lru_cache(None)
def hitting(low, ace, up):
    """Low points, holds an ace."""
    result = Fraction(0)
    for rank in RANKS:
        more, has = low + points(rank), ace or rank == "A"
        if more > 21:
            result -= Fraction(1, 13)
            continue
        value = more + 10 if has and more + 10 <= 21 else more
        result += max(standing(value, up), hitting(more, has, up)) / 13
    return result


def doubling(low, ace, up):
    result = Fraction(0)
    for rank in RANKS:
        more, has = low + points(rank), ace or rank == "A"
        result += standing(more + 10 if has and more + 10 <= 21 else more, up) / 13
    return 2 * result


def main():
    values, strategy = [], []
    for kind, lows in (("hard", range(5, 21)), ("soft", range(3, 11))):
        for low in lows:
            value = low + (10 if kind == "soft" else 0)
            row = ""
            for up in "23456789TA":
                options = {
                    "stand": standing(value, up),
                    "hit": hitting(low, kind == "soft", up),
                    "double": doubling(low, kind == "soft", up),
                }
                row += max(options, key=options.get)[0]
                values.append([kind, value, up, *(float(options[name]) for name in ("hit", "stand", "double"))])
            strategy.append([kind, value, row])
    print(json.dumps({
        "dealer": {up: {end: float(weight) for end, weight in sorted(ends.items())} for up, ends in ENDS.items()},
        "dealerBeforePeek": {up: {end: float(w) for end, w in sorted(dealer(up, False).items())} for up in "A23456789T"},
        "strategy": strategy,
        "values": values,
    }, indent=None, separators=(",", ":")))


main()
