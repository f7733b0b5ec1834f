import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import type { ChatModel, ChatRequest } from "../../src/models/chat-model.ts";
import { stream } from "../../src/random.ts";
import type { Step } from "../../src/trajectory/schema.ts";
import { mistakeFault, modelMistake } from "../../synth/inject/model-mistake.ts";
import {
  type ActionContext,
  contextOf,
  DOMAINS,
  type Domain,
  domainOf,
  requireDomain,
} from "../../synth/inject/operator.ts";
import { injectionOperatorById, injectionOperators, ruleOperators } from "../../synth/inject/registry.ts";
import { rephrased } from "../../synth/inject/rephrase.ts";

const CODE = `\`\`\`python
def close(values, limit):
    total = 0
    for value in values:
        if value > 0 and value < limit:
            total = total + value
            total = pow(total, limit)
    return sorted(set([total, limit]), reverse=True)
\`\`\``;
const SHOWN = `Problem: Were Scott Derrickson and Ed Wood of the same nationality?

Log:
0 planner: Hop 1: look up Scott Derrickson
1 searcher: Search[Scott Derrickson]
> library: [Scott Derrickson] Scott Derrickson is an American director. He lives in Los Angeles.
2 reader: Note: Scott Derrickson is an American director.
3 planner: Hop 2: look up Ed Wood (last)
4 searcher: Search[Ed Wood]
> library: [Ed Wood] Ed Wood was an American filmmaker. Tim Burton made a film about Ed Wood.

Turn: reader. Note what helps.`;
const MATH_SHOWN =
  "Log:\n0 planner: Plan 1: 16 - 3\n1 solver: 16 - 3 = 13\n2 planner: Plan 2: previous * 2\n3 solver: 13 * 2 = 26";

/** All that an operator makes of an action in 60 draws. */
function outcomes(id: string, action: string, context: ActionContext): Set<string | undefined> {
  const operator = injectionOperatorById(id);
  if (operator.kind !== "rule") throw new Error(`${id} asks a model`);
  return new Set(Array.from({ length: 60 }, (_, draw) => operator.perturb(action, stream(8, draw), context)));
}
const of = (domain: Domain, shown = ""): ActionContext => ({ domain, shown });

describe("the perturbations", () => {
  // Every outcome that a rule may have, written by hand.
  it.each<[string, Domain, string, string, string[]]>([
    ["wrong-operator", "math", "Plan 2: previous * 4 (last)", "", ["Plan 2: previous + 4 (last)"]],
    // 13 - 4 is 9; with + it is 17.
    ["wrong-operator", "math", "13 - 4 = 9", "", ["13 + 4 = 17"]],
    ["wrong-operator", "math", "13 - 4 = 9", "2 planner: Plan 2: previous - 4", []],
    [
      "wrong-operator",
      "code",
      "if a < b and c == 1:\n    d = a // b",
      "",
      [
        "if a <= b and c == 1:\n    d = a // b",
        "if a < b or c == 1:\n    d = a // b",
        "if a < b and c != 1:\n    d = a // b",
        "if a < b and c == 1:\n    d = a / b",
      ],
    ],
    [
      "dropped-constraint",
      "search",
      "Hop 1: look up Ed Wood (last)",
      "",
      ["Hop 1: look up Ed (last)", "Hop 1: look up Wood (last)"],
    ],
    ["dropped-constraint", "game", "Hand: soft 17 of 2 cards against 6", "", ["Hand: hard 17 of 2 cards against 6"]],
    [
      "dropped-constraint",
      "math",
      "He pays 3 dollars per egg, but only on Monday.",
      "",
      ["He pays 3 dollars, but only on Monday.", "He pays 3 dollars per egg."],
    ],
    [
      "wrong-argument",
      "math",
      "Plan 3: 100 - previous",
      MATH_SHOWN,
      ["Plan 3: previous - 100", "Plan 3: 100 - result 1"],
    ],
    ["wrong-argument", "code", "x = power(base, exponent)", "", ["x = power(exponent, base)"]],
    ["wrong-argument", "code", "def f(a, b):\n    return max(a, b)", "", []],
    [
      "wrong-argument",
      "search",
      "Search[Tim Burton]",
      SHOWN,
      ["Search[Scott Derrickson]", "Search[Ed Wood]", "Search[American]", "Search[Los Angeles]"],
    ],
    ["wrong-entity", "search", "Answer: Tim Burton", "> library: Tim Burton knew Ed Wood.", ["Answer: Ed Wood"]],
    ["wrong-entity", "code", "def f(a, b):\n    return a", "", ["def f(a, b):\n    return b"]],
    [
      "fabricated-fact",
      "search",
      "Note: Ed Wood was an American filmmaker.",
      "> library: [Scott] Scott Derrickson is a director.",
      ["Note: Ed Wood is a director."],
    ],
    ["fabricated-fact", "code", "y.append(len(x))", "", ["y.push(len(x))", "y.append(length(x))"]],
    ["premature-stop", "math", "Plan 2: previous - 4", "", ["Plan 2: previous - 4 (last)"]],
    ["premature-stop", "math", "Plan 2: previous - 4 (last)", "", []],
    ["premature-stop", "game", "Advice: hit", "", ["Advice: stand"]],
    [
      "premature-stop",
      "code",
      "def f(a):\n    for x in a:\n        a = x\n    return a",
      "",
      ["def f(a):\n    for x in a:\n        a = x\n        return a"],
    ],
    [
      "misread-tool-result",
      "math",
      "Checked: the current value is 26.",
      MATH_SHOWN,
      ["Checked: the current value is 13."],
    ],
    [
      "misread-tool-result",
      "search",
      "Note: Ed Wood was an American filmmaker.",
      SHOWN,
      ["Note: Tim Burton made a film about Ed Wood."],
    ],
    [
      "misread-tool-result",
      "game",
      "Hand: hard 19 of 2 cards against 6",
      "",
      [
        "Hand: hard 16 of 2 cards against 6",
        "Hand: hard 17 of 2 cards against 6",
        "Hand: hard 18 of 2 cards against 6",
        "Hand: hard 20 of 2 cards against 6",
      ],
    ],
    [
      "wrong-number",
      "game",
      "Hand: hard 20 of 3 cards against A",
      "",
      [
        "Hand: hard 17 of 3 cards against A",
        "Hand: hard 18 of 3 cards against A",
        "Hand: hard 19 of 3 cards against A",
      ],
    ],
  ])("%s in %s changes %j, shown %j, to one of %j", (id, domain, action, shown, expected) => {
    const found = outcomes(id, action, of(domain, shown));
    expect([...found].map(String).sort()).toEqual((expected.length === 0 ? ["undefined"] : expected).sort());
  });

  const TITLES = ["Ed Wood", "Ed Wood (film)", "Scott Derrickson", "Tim Burton (director)"];
  const ASSERTION = "```python\nassert area(2, 3) == 7\n```";
  it.each<[string, Domain, string, string, readonly string[] | undefined, (string | undefined)[]]>([
    // What can be looked up, not any name that was seen.
    [
      "wrong-argument",
      "search",
      "Search[Ed Wood (film)]",
      SHOWN,
      TITLES,
      ["Search[Scott Derrickson]", "Search[Tim Burton (director)]"],
    ],
    // The words of the demand name nothing, nor do months; a name ends with its sentence.
    [
      "wrong-argument",
      "search",
      "Search[Oslo]",
      "Problem: Who left Bergen. Ada Holm did, in May.\n\nLog:\n\n\nTurn: searcher. Find it.",
      undefined,
      ["Search[Bergen]", "Search[Ada Holm]"],
    ],
    ["wrong-entity", "search", "Hop 2: look up Ed Wood (last)", SHOWN, TITLES, [undefined]],
    ["wrong-entity", "search", "Search[Ed Wood]", SHOWN, TITLES, [undefined]],
    ["wrong-entity", "search", "Note: Ada left.", "", ["Tim Burton (director)"], ["Note: Tim Burton left."]],
    ["wrong-entity", "search", "Answer: Ada", "", ["Tim Burton (director)"], ["Answer: Tim Burton (director)"]],
    // "Ed Wood" fits another title as well; "Ed (film)" and "Wood (film)" fit none.
    ["dropped-constraint", "search", "Search[Ed Wood (film)]", SHOWN, TITLES, ["Search[Ed Wood]"]],
    ["dropped-constraint", "search", "Search[Scott Derrickson]", SHOWN, TITLES, [undefined]],
    [
      "dropped-constraint",
      "search",
      "Note: Ada left. Bob came.",
      "",
      undefined,
      ["Note: Ada left.", "Note: Bob came."],
    ],
    [
      "misread-tool-result",
      "search",
      "Note: Ed Wood was an American filmmaker. He liked angora.",
      "> library: [Ed Wood] Ed Wood was an American filmmaker. Tim Burton made a film about Ed Wood.",
      undefined,
      ["Note: Tim Burton made a film about Ed Wood. He liked angora."],
    ],
    // Of an assertion, what comes out: neither what goes in, nor how it is compared.
    ["wrong-operator", "code", ASSERTION, "", undefined, [undefined]],
    ["wrong-argument", "code", ASSERTION, "", undefined, [undefined]],
    ["fabricated-fact", "code", "assert even(2) == True", "", undefined, ["assert even(2) == False"]],
    ["fabricated-fact", "code", "assert holds(True) == [1]", "", undefined, [undefined]],
  ])("%s in %s changes %j, shown %j with titles %j, to one of %j", (id, domain, action, shown, titles, expected) => {
    const found = outcomes(id, action, { domain, shown, ...(titles === undefined ? {} : { titles }) });
    expect([...found].map(String).sort()).toEqual(expected.map(String).sort());
  });

  it("wrong-number of an assertion is about its result alone", () => {
    for (const made of outcomes("wrong-number", ASSERTION, of("code"))) {
      expect(made).toMatch(/^```python\nassert area\(2, 3\) == (?!7\n)\d+\n```$/u);
    }
  });

  it("any names the rule that it drew, whose outcome it is", () => {
    const any = injectionOperatorById("any");
    if (any.kind !== "choice") throw new Error("any does not choose");
    const drawn = new Set<string>();
    for (let draw = 0; draw < 60; draw++) {
      const made = any.choose("Search[Ed Wood (film)]", stream(4, draw), {
        domain: "search",
        shown: SHOWN,
        titles: TITLES,
      });
      if (made === undefined) throw new Error("nothing to change");
      drawn.add(made.operator);
      expect(
        outcomes(made.operator, "Search[Ed Wood (film)]", { domain: "search", shown: SHOWN, titles: TITLES }),
      ).toContain(made.action);
    }
    expect(drawn).toEqual(new Set(["wrong-argument", "dropped-constraint"]));
    expect(any.choose("nothing here", stream(4), of("game"))).toBeUndefined();
  });

  it("titles are those of the task's paragraphs", () => {
    const extra = { kind: "search", paragraphs: [{ title: "Ed Wood", sentences: [] }] };
    expect(contextOf({ extra }, "shown")).toEqual({ domain: "search", shown: "shown", titles: ["Ed Wood"] });
    expect(contextOf({ extra: { kind: "math" } }, "")).toEqual({ domain: "math", shown: "" });
  });

  const SAMPLES: Readonly<Record<Domain, readonly string[]>> = {
    math: [
      "Plan 2: previous - 4",
      "13 - 4 = 9",
      "Checked: the current value is 9.",
      "She sells 4 eggs per day, but only on Monday.",
      "Anna Bell buys 3.",
    ],
    code: [CODE],
    search: [
      "Hop 2: look up Ed Wood",
      "Search[Ed Wood]",
      "Note: Ed Wood was an American filmmaker.",
      "Answer: Ed Wood",
    ],
    game: ["Hand: soft 17 of 2 cards against 6", "Advice: hit", "Action: double"],
  };
  const shownIn = (domain: Domain): string => (domain === "math" ? `${MATH_SHOWN}\nBob Hill and Anna Bell.` : SHOWN);

  it.each(ruleOperators.map((operator) => [operator.id, operator] as const))(
    "%s finds something in each of its domains, never returns the action itself, and draws by its stream alone",
    (_, operator) => {
      for (const domain of operator.domains) {
        const context = of(domain, shownIn(domain));
        const made = SAMPLES[domain].flatMap((action) =>
          Array.from({ length: 20 }, (__, draw) => {
            const perturbed = operator.perturb(action, stream(3, draw), context);
            expect(perturbed).not.toBe(action);
            expect(operator.perturb(action, stream(3, draw), context)).toBe(perturbed);
            return perturbed;
          }),
        );
        expect([operator.id, domain, made.some((one) => one !== undefined)]).toEqual([operator.id, domain, true]);
      }
    },
  );

  it("leave code that Python can parse, and its fence (python3 of this machine)", () => {
    const made = ruleOperators
      .filter(({ domains }) => domains.includes("code"))
      .flatMap((operator) => [...outcomes(operator.id, CODE, of("code"))])
      .filter((code) => code !== undefined);
    expect(made.length).toBeGreaterThan(12);
    const programs = made.map((text) => /^```python\n([\s\S]*)\n```$/u.exec(text)?.[1] ?? "no fence (");
    const check = "import ast, json, sys\nfor p in json.load(sys.stdin): ast.parse(p)";
    const { status, stderr } = spawnSync("python3", ["-c", check], {
      input: JSON.stringify(programs),
      encoding: "utf8",
    });
    expect([status, stderr]).toEqual([0, ""]);
  });

  it("are registered once, each with its domains", () => {
    const ids = injectionOperators.map(({ id }) => id);
    expect(ids).toEqual([
      "wrong-number",
      "wrong-operator",
      "dropped-constraint",
      "wrong-argument",
      "wrong-entity",
      "fabricated-fact",
      "premature-stop",
      "misread-tool-result",
      "any",
      "model-mistake",
    ]);
    for (const { domains } of injectionOperators) expect(DOMAINS).toEqual(expect.arrayContaining([...domains]));
    expect(() => injectionOperatorById("bogus")).toThrow(/known: wrong-number/u);
  });

  it("are refused for tasks of another kind", () => {
    expect(domainOf({ extra: { kind: "game" } })).toBe("game");
    expect(domainOf({ extra: { calculations: ["1 + 2"] } })).toBe("math");
    expect(domainOf({})).toBeUndefined();
    expect(() => requireDomain(injectionOperatorById("fabricated-fact"), "game")).toThrow(/the tasks are game/u);
    requireDomain(injectionOperatorById("fabricated-fact"), undefined);
  });
});

describe("the placebo", () => {
  it.each<[Domain | undefined, string, string]>([
    ["math", "13 - 4 = 9", "13 - 4 = 9."],
    ["math", "Checked: it is 9.", "Checked: it is 9"],
    ["game", "Advice: hit", "Advice:  hit"],
    ["search", "Note: Ada left.", "Note:  Ada left."],
    ["search", "Hop 2: look up Ed Wood (last)", "Hop 2:  look up Ed Wood (last)"],
    ["search", "Search[Ed Wood]", "Search[Ed Wood]."],
    ["code", "```python\nx = 1\n```", "```python\nx = 1\n\n```"],
    ["code", "x = 1", "x = 1\n# end"],
    [undefined, "Search[Ed Wood]", "Search[Ed Wood]."],
  ])("in %s says %j as %j", (domain, action, expected) => expect(rephrased(action, domain)).toBe(expected));
});

describe("a mistake made by a model", () => {
  const task = { id: "t", text: "How many eggs are left?", source: "x", groupId: "t" };
  const step = (index: number, content: string): Step => ({
    index,
    agent: "solver",
    kind: "message",
    content,
    toolCalls: [],
    retrieved: [],
    callIds: [],
  });
  const steps = [step(0, "Plan 1: 16 - 3"), step(1, "16 - 3 = 13")];
  const answering = (...answers: string[]): ChatModel & { readonly asked: ChatRequest[] } => {
    const asked: ChatRequest[] = [];
    return {
      id: "answers",
      asked,
      async complete(request) {
        asked.push(request);
        return { content: answers[asked.length - 1] ?? "", toolCalls: [], finishReason: "stop", model: "answers" };
      },
    };
  };

  it("is taken where it has the step's form", async () => {
    const model = answering('<think>hm</think>{"action": "16 - 3 = 14", "reason": "slip"}');
    expect(await modelMistake.propose({ task, steps, index: 1, shown: "", model })).toEqual({
      action: "16 - 3 = 14",
      calls: 1,
    });
    expect(model.asked[0]?.messages[1]?.content).toContain("Action: 16 - 3 = 13");
  });

  it("is asked for again where it gives itself away, then dropped", async () => {
    const model = answering(
      '{"action": "16 - 3 = 14 (mistake)"}',
      '{"action": "16 - 3 = 13"}',
      "I cannot write wrong mathematics.",
    );
    expect(await modelMistake.propose({ task, steps, index: 1, shown: "", model })).toEqual({
      action: undefined,
      calls: 3,
    });
    expect(model.asked[1]?.messages[1]?.content).toContain('"mistake" gives the mistake away');
    expect(model.asked[2]?.messages[1]?.content).toContain("it is the step as it was");
  });

  it.each([
    ["16 - 3 = 13", "16 - 3 = 31", undefined],
    ["16 - 3 = 13", "Wrongly, 16 - 3 = 31", "gives the mistake away"],
    ["The error bound is 2", "The error bound is 3", undefined],
    ["Plan 1: 16 - 3", "I plan 16 - 4", "has not the form"],
    ["16 - 3 = 13", "16 - 3 = 31, which is what we get when we count all of the eggs at once", "words in place of"],
    ["16 - 3 = 13", "```\n16 - 3 = 31\n```", "has not the form"],
  ])("%j as %j: %s", (original, action, fault) => {
    if (fault === undefined) expect(mistakeFault(original, action)).toBeUndefined();
    else expect(mistakeFault(original, action)).toContain(fault);
  });
});
