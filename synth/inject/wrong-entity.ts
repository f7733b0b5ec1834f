import { NO_CONTEXT, type RuleOperator } from "./operator.ts";
import { type Change, changesAt, hasCode, inProse, namesIn, oneOf, withoutDemand } from "./text.ts";

const QUERY = /\b(?:Search|Lookup)\[|: look up /u;

/** Takes one thing for another that stands in what the agent was shown: a name for a name, a parameter for a parameter. */
export const wrongEntity: RuleOperator = {
  id: "wrong-entity",
  title: "one named thing taken for another",
  kind: "rule",
  domains: ["math", "code", "search"],
  perturb(action, random, { domain, shown, titles } = NO_CONTEXT) {
    const inCode = domain === "code" || (domain === undefined && hasCode(action));
    if (inCode) return oneOf(action, wrongVariables(action), random);
    // A query as a whole is an argument.
    if (domain === "search" && QUERY.test(action)) return undefined;
    const named = /^Answer: /u.test(action) ? titles : titles?.map(inProse);
    const known = [...new Set([...namesIn(withoutDemand(shown)), ...(named ?? [])])];
    return oneOf(action, wrongNames(action, known), random);
  },
};

function wrongNames(action: string, known: readonly string[]): Change[] {
  return namesIn(action).flatMap((name) => {
    const at = action.indexOf(name);
    return known
      .filter((other) => !name.includes(other) && !other.includes(name))
      .map((by) => ({ at, end: at + name.length, by }));
  });
}

/** A parameter of a function for another one of it, at one place in its body. */
function wrongVariables(code: string): Change[] {
  const [signature = "", list = ""] = /def \w+\(([^)]*)\)[^\n]*\n/u.exec(code) ?? [];
  const parameters = list.split(",").map((one) => one.split(/[:=]/u)[0]?.trim() ?? "");
  const named = parameters.filter((one) => /^[A-Za-z_]\w*$/u.test(one));
  const body = code.indexOf(signature) + signature.length;
  return named.flatMap((name) =>
    changesAt(code, new RegExp(`(?<![\\w.'"])${name}\\b(?!\\s*=[^=])`, "gu"), () => named).filter(
      ({ at }) => at >= body && signature !== "",
    ),
  );
}
