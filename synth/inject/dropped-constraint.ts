import { NO_CONTEXT, type RuleOperator } from "./operator.ts";
import { changesAt, hasCode, oneOf } from "./text.ts";

/** Places in Python where a condition can be left out and the code still parses. */
const IN_CODE: readonly (readonly [RegExp, (match: RegExpExecArray) => string])[] = [
  [/(?<=^[^\n#"']*\bif [^\n:"']*\w[^\n:"']*) (?:and|or) [^\n:"']*(?=:)/gmu, () => ""],
  [/ if [^\n\]["']*(?=\]|\)$)/gmu, () => ""],
  [/, reverse=True/gu, () => ""],
  [/\b(?:abs|set|sorted|int)\(([\w.]+)\)/gu, (match) => match[1] ?? ""],
  [/^( *)if [^\n]*:\n\1 +return [^\n]*\n/gmu, () => ""],
];
/** A clause that narrows what is meant. */
const CLAUSE =
  /,? (?:but|only|except|excluding|without|at least|at most|no more than|not counting|per|each|every|after|before)\b[^,.;:\n]*/giu;
const TOPIC = /(?<=Search\[|Lookup\[|look up )[^\]\n]*?(?=\]| \(last\)|$)/gmu;

/** Leaves out a condition: of a program, a query, a sentence, or that an ace counts 11. */
export const droppedConstraint: RuleOperator = {
  id: "dropped-constraint",
  title: "one condition left out",
  kind: "rule",
  domains: ["math", "code", "search", "game"],
  perturb(action, random, { domain } = NO_CONTEXT) {
    if (domain === "code" || (domain === undefined && hasCode(action))) {
      return oneOf(
        action,
        IN_CODE.flatMap(([pattern, by]) => changesAt(action, pattern, (match) => [by(match)])),
        random,
      );
    }
    if (domain === "game") {
      return oneOf(
        action,
        changesAt(action, /\bsoft\b/gu, () => ["hard"]),
        random,
      );
    }
    const topics = changesAt(action, TOPIC, ([topic]) => withoutOneWord(topic));
    const clauses = changesAt(action, CLAUSE, () => [""]);
    return oneOf(action, domain === "math" || topics.length === 0 ? clauses : topics, random);
  },
};

/** A query of several words, each time without one of them. */
function withoutOneWord(topic: string): string[] {
  const words = topic.split(" ");
  return words.length < 2 ? [] : words.map((_, left) => words.filter((__, at) => at !== left).join(" "));
}
