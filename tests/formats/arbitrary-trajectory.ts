import fc from "fast-check";
import type { Label, Step, Trajectory } from "../../src/trajectory/schema.ts";

/** Any text: control characters, line ends, quotes, astral characters, lone surrogates now and then. */
export const anyText = fc.oneof(
  { weight: 6, arbitrary: fc.string({ unit: "binary", maxLength: 40 }) },
  { weight: 2, arbitrary: fc.constantFrom("\n", "\r\n", "\u0000", "\u2028", "\ufeff", '"', "\\", "\ud800", "{", "𝔘") },
);
export const anyName = fc.string({ unit: "binary", minLength: 1, maxLength: 20 });

/** JSON has no minus zero. */
const json = fc
  .jsonValue({ maxDepth: 3, noUnicodeString: false })
  .map((value): unknown => JSON.parse(JSON.stringify(value)));

/** zod leaves out a key "__proto__", as a guard: fields of that name are not kept. */
export const anyExtra = fc.dictionary(
  fc.string({ unit: "binary", minLength: 1, maxLength: 12 }).filter((key) => key !== "__proto__"),
  json,
  { maxKeys: 4, noNullPrototype: true },
);

const amount = fc.nat({ max: 1_000_000 });
const time = fc.date({ noInvalidDate: true, min: new Date(0), max: new Date(4e12) }).map((date) => date.toISOString());
const share = fc.double({ min: 0, max: 1, noNaN: true }).map((number) => number + 0);

const anyToolCall = fc.record(
  {
    id: anyText,
    name: anyText,
    arguments: anyText,
    result: anyText,
    error: anyText,
    startedAt: time,
    endedAt: time,
    emptyIsValid: fc.boolean(),
    extra: anyExtra,
  },
  { requiredKeys: ["id", "name", "arguments"], noNullPrototype: true },
);

const anyRetrieved = fc.record(
  { id: anyText, text: anyText, score: share, source: anyText },
  { requiredKeys: ["id", "text"], noNullPrototype: true },
);

const anyStep: fc.Arbitrary<Omit<Step, "index">> = fc.record(
  {
    agent: anyName,
    role: anyText,
    kind: fc.constantFrom("message", "tool", "environment", "plan"),
    content: anyText,
    toolCalls: fc.array(anyToolCall, { maxLength: 2 }),
    retrieved: fc.array(anyRetrieved, { maxLength: 2 }),
    callIds: fc.array(anyText, { maxLength: 2 }),
    usage: fc.record({ promptTokens: amount, completionTokens: amount }, { noNullPrototype: true }),
    startedAt: time,
    endedAt: time,
    extra: anyExtra,
  },
  { requiredKeys: ["agent", "kind", "content", "toolCalls", "retrieved", "callIds"], noNullPrototype: true },
);

/** A label of a log with that many steps. */
export const anyLabel = (steps: number): fc.Arbitrary<Label> =>
  fc.record(
    {
      agent: anyName,
      step: fc.nat({ max: steps - 1 }),
      source: fc.constantFrom("human", "counterfactual", "injection", "imported"),
      verdict: fc.constantFrom(
        "earliest-confirmed",
        "decisive-earlier-undecided",
        "undecided",
        "not-replayable",
        "first-flip",
      ),
      evidenceRef: anyText,
      confidence: share,
      annotator: anyText,
      reason: anyText,
      createdAt: time,
      extra: anyExtra,
    },
    { requiredKeys: ["agent", "step", "source"], noNullPrototype: true },
  );

/** Steps as the model wants them: at least one, indexes contiguous from 0. */
export const anySteps: fc.Arbitrary<Step[]> = fc
  .array(anyStep, { minLength: 1, maxLength: 5 })
  .map((steps) => steps.map((step, index) => ({ index, ...step })));

/** A random trajectory that satisfies the schema and the invariants (labels inside the log), every optional field in play. */
export const anyTrajectory: fc.Arbitrary<Trajectory> = anySteps.chain((steps) =>
  fc.record(
    {
      schemaVersion: fc.constant(1 as const),
      id: anyName,
      task: fc.record(
        {
          id: anyName,
          text: anyText,
          referenceAnswer: anyText,
          referenceSolution: anyText,
          source: anyText,
          groupId: anyName,
          extra: anyExtra,
        },
        { requiredKeys: ["id", "text", "source", "groupId"], noNullPrototype: true },
      ),
      system: anyText,
      stepPolicy: anyText,
      steps: fc.constant(steps),
      outcome: fc.record(
        { success: fc.boolean(), answer: anyText, checker: anyText, detail: anyText },
        { requiredKeys: ["success", "checker"], noNullPrototype: true },
      ),
      labels: fc.array(anyLabel(steps.length), { maxLength: 3 }),
      provenance: fc.record(
        {
          kind: fc.constantFrom("recorded", "rerun", "injected", "imported"),
          model: anyText,
          simulated: fc.boolean(),
          format: anyText,
          file: anyText,
          seed: fc.oneof(amount, anyText),
          conversions: fc.array(anyText, { maxLength: 2 }),
          extra: anyExtra,
        },
        { requiredKeys: ["kind", "simulated", "conversions"], noNullPrototype: true },
      ),
      extra: anyExtra,
    },
    {
      requiredKeys: ["schemaVersion", "id", "task", "system", "stepPolicy", "steps", "outcome", "labels", "provenance"],
      noNullPrototype: true,
    },
  ),
);

/** Random trajectories with ids of their own. */
export const anyTrajectories = (maxLength = 4): fc.Arbitrary<Trajectory[]> =>
  fc.uniqueArray(anyTrajectory, { minLength: 1, maxLength, selector: (trajectory) => trajectory.id });
