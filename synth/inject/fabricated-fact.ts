import { NO_CONTEXT, type RuleOperator } from "./operator.ts";
import { assertedResults, type Change, changesAt, hasCode, oneOf, sentencesIn } from "./text.ts";

/** Functions that do not exist in Python, in place of those that do: what people and models take over from elsewhere. */
const INVENTED: readonly (readonly [RegExp, string])[] = [
  [/\.append\(/gu, ".push("],
  [/\.items\(\)/gu, ".entries()"],
  [/\.strip\(\)/gu, ".trim()"],
  [/\.startswith\(/gu, ".startsWith("],
  [/\.endswith\(/gu, ".endsWith("],
  [/\.upper\(\)/gu, ".toUpperCase()"],
  [/\.lower\(\)/gu, ".toLowerCase()"],
  [/\bmath\.gcd\(/gu, "math.hcf("],
  [/\bmath\.sqrt\(/gu, "math.root("],
  [/\bmath\.factorial\(/gu, "math.fact("],
  [/\bsum\(/gu, "total("],
  [/\blen\(/gu, "length("],
  [/\bsorted\(/gu, "sort("],
  [/\bcollections\.Counter\(/gu, "collections.Count("],
  [/\bre\.findall\(/gu, "re.find_all("],
];
const VERB = / (?:is|was|are|were|has|had|stars|starred|plays|played|won) /u;

/** States what stands nowhere: of the right subject what was said of another one, or a function that does not exist. */
export const fabricatedFact: RuleOperator = {
  id: "fabricated-fact",
  title: "a fact or a function made up",
  kind: "rule",
  domains: ["search", "code"],
  perturb(action, random, { domain, shown } = NO_CONTEXT) {
    if (domain === "code" || (domain === undefined && hasCode(action))) {
      const results = assertedResults(action);
      if (results.length > 0) return oneOf(action, denied(action, results), random);
      return oneOf(
        action,
        INVENTED.flatMap(([real, made]) => changesAt(action, real, () => [made])),
        random,
      );
    }
    return oneOf(action, madeUp(action, shown), random);
  },
};

/** Asserts of a yes or no the other one. */
const denied = (action: string, results: ReturnType<typeof assertedResults>): Change[] =>
  changesAt(action, /\b(?:True|False)\b/gu, ([said]) => [said === "True" ? "False" : "True"]).filter(({ at }) =>
    results.some((result) => at >= result.at && at < result.end),
  );

/** Each sentence of the action with the predicate of another sentence that the agent was shown. */
function madeUp(action: string, shown: string): Change[] {
  const start = /^\w+: /u.exec(action)?.[0].length ?? 0;
  const predicates = shown
    .split("\n")
    .flatMap((line) => sentencesIn(line.replace(/^> \w+: /u, "")))
    .flatMap((sentence) => predicateOf(sentence) ?? []);
  return sentencesIn(action.slice(start)).flatMap((sentence) => {
    const own = predicateOf(sentence);
    if (own === undefined) return [];
    const at = action.indexOf(sentence) + sentence.length - own.length;
    return predicates.filter((other) => other !== own).map((by) => ({ at, end: at + own.length, by }));
  });
}

function predicateOf(sentence: string): string | undefined {
  const found = VERB.exec(sentence);
  return found === null || !sentence.endsWith(".") ? undefined : sentence.slice(found.index);
}
