import { NO_CONTEXT, type RuleOperator } from "./operator.ts";
import { type Change, changesAt, lastObservation, oneOf, sentencesIn } from "./text.ts";

/** Statement of a value that stands in the log. */
const STATED = /(?<=\b(?:is|value|result|total):? )-?\d+(?:\.\d+)?(?=\.?$)/gmu;
const HAND = /(?<=\b(?:hard|soft) )\d+(?= of )/gu;
/** How far off a misread hand is: a ten for a nine, a three for a five, an ace left out. */
const OFF = [-3, -2, -1, 1, 2, 3];

/** Takes from what a tool, the table or the log showed something else than is asked: another sentence, value or hand. */
export const misreadToolResult: RuleOperator = {
  id: "misread-tool-result",
  title: "what a tool or the world answered misread",
  kind: "rule",
  domains: ["math", "search", "game"],
  perturb(action, random, { domain, shown } = NO_CONTEXT) {
    if (domain === "code") return undefined;
    if (domain === "game") {
      const changes = changesAt(action, HAND, ([total]) =>
        OFF.map((off) => Number(total) + off)
          .filter((other) => other >= 4 && other <= 20)
          .map(String),
      );
      return oneOf(action, changes, random);
    }
    const changes = domain === "math" ? otherValues(action, shown) : otherSentences(action, shown);
    return oneOf(action, changes, random);
  },
};

/** A result of the log in place of the one that is stated. */
function otherValues(action: string, shown: string): Change[] {
  const results = [...shown.matchAll(/= (-?\d+(?:\.\d+)?)$/gmu)].map(([, value = ""]) => value);
  return changesAt(action, STATED, () => [...new Set(results)]);
}

/** Another sentence of what was found last, in place of one that was noted of it, or of a note in other words. */
function otherSentences(action: string, shown: string): Change[] {
  const label = /^Note: /u.exec(action)?.[0];
  if (label === undefined) return [];
  const found = sentencesIn(lastObservation(shown) ?? "");
  const noted = found.filter((sentence) => action.includes(sentence));
  const places = noted.map((sentence) => {
    const at = action.indexOf(sentence);
    return { at, end: at + sentence.length };
  });
  if (places.length === 0) places.push({ at: label.length, end: action.length });
  const others = found.filter((sentence) => !action.includes(sentence));
  return places.flatMap((place) => others.map((by) => ({ ...place, by })));
}
