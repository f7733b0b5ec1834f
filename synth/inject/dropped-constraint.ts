import { NO_CONTEXT, type RuleOperator } from "./operator.ts";
import { type Change, changesAt, hasCode, oneOf, sentencesIn } from "./text.ts";

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
  perturb(action, random, { domain, titles } = NO_CONTEXT) {
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
    const topics = changesAt(action, TOPIC, ([topic]) => withoutOneWord(topic, titles));
    const clauses = changesAt(action, CLAUSE, () => [""]);
    if (domain === "math") return oneOf(action, clauses, random);
    return oneOf(action, action.search(TOPIC) >= 0 ? topics : [...clauses, ...sentencesLeftOut(action)], random);
  },
};

/** Each time one sentence of a note that has several. */
function sentencesLeftOut(action: string): Change[] {
  const [label] = /^Note: /u.exec(action) ?? [];
  const sentences = label === undefined ? [] : sentencesIn(action.slice(label.length));
  return sentences.length < 2
    ? []
    : sentences.map((sentence, at) => {
        const start = action.indexOf(sentence);
        const end = start + sentence.length;
        return at === 0 ? { at: start, end: end + 1, by: "" } : { at: start - 1, end, by: "" };
      });
}

/** A query of several words, each time without one of them; where titles are known, only if another one then fits as well. */
function withoutOneWord(topic: string, titles: readonly string[] | undefined): string[] {
  const words = topic.split(" ");
  if (words.length < 2) return [];
  const fewer = words.map((_, left) => words.filter((__, at) => at !== left));
  const others = titles?.filter((title) => title !== topic).map((title) => new Set(title.split(" ")));
  const fits = (query: readonly string[]): boolean =>
    others === undefined || others.some((title) => query.every((word) => title.has(word)));
  return fewer.filter(fits).map((query) => query.join(" "));
}
