import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { parquetMetadata, parquetSchema } from "hyparquet";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isError } from "../../../src/errors.ts";
import { type Trajectory, trajectorySchema } from "../../../src/trajectory/schema.ts";
import { readTracerTrajParquet, tracerTrajParquet } from "../../../synth/dataset/parquet.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "rootstep-parquet-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const text = fc.string({ unit: "grapheme", maxLength: 12 });
const name = fc.string({ unit: "grapheme", minLength: 1, maxLength: 6 });
const extra = fc.dictionary(
  name.filter((key) => key !== "__proto__"),
  fc.jsonValue({ maxDepth: 2 }),
  { maxKeys: 3 },
);
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });
const tokens = fc.integer({ min: 0, max: 2 ** 40 });

const toolCall = fc.record(
  {
    id: text,
    name: text,
    arguments: text,
    result: text,
    error: text,
    endedAt: text,
    emptyIsValid: fc.boolean(),
    extra,
  },
  { requiredKeys: ["id", "name", "arguments"] },
);
const step = fc.record(
  {
    agent: name,
    role: text,
    kind: fc.constantFrom("message", "tool", "environment", "plan"),
    content: text,
    toolCalls: fc.array(toolCall, { maxLength: 3 }),
    retrieved: fc.array(
      fc.record(
        { id: text, text, score: fc.double({ noNaN: true, noDefaultInfinity: true }), source: text },
        { requiredKeys: ["id", "text"] },
      ),
      { maxLength: 2 },
    ),
    callIds: fc.array(text, { maxLength: 2 }),
    usage: fc.record({ promptTokens: tokens, completionTokens: tokens }),
    startedAt: text,
    extra,
  },
  { requiredKeys: ["agent", "kind", "content", "toolCalls", "retrieved", "callIds"] },
);
const trajectory = fc
  .record(
    {
      id: name,
      task: fc.record(
        { id: name, text, referenceAnswer: text, referenceSolution: text, source: text, groupId: name, extra },
        { requiredKeys: ["id", "text", "source", "groupId"] },
      ),
      system: text,
      stepPolicy: text,
      steps: fc.array(step, { minLength: 1, maxLength: 4 }),
      outcome: fc.record(
        { success: fc.boolean(), answer: text, checker: text },
        { requiredKeys: ["success", "checker"] },
      ),
      seed: maybe(fc.oneof(fc.integer(), text)),
      simulated: fc.boolean(),
      label: maybe(
        fc.record(
          { agent: name, reason: text, confidence: fc.double({ min: 0, max: 1, noNaN: true }), extra },
          { requiredKeys: ["agent"] },
        ),
      ),
      extra,
    },
    { requiredKeys: ["id", "task", "system", "stepPolicy", "steps", "outcome", "simulated"] },
  )
  .map(
    ({ seed, simulated, label, steps, ...rest }): Trajectory =>
      trajectorySchema.parse({
        ...rest,
        schemaVersion: 1,
        steps: steps.map((one, index) => ({ ...one, index })),
        labels: label === undefined ? [] : [{ ...label, step: steps.length - 1, source: "human" }],
        provenance: { kind: "imported", simulated, ...(seed === undefined ? {} : { seed }), conversions: ["a", ""] },
      }),
  );

const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

async function roundTrip(trajectories: readonly Trajectory[]): Promise<unknown> {
  const file = join(folder, "round.parquet");
  writeFileSync(file, tracerTrajParquet(trajectories));
  return plain((await readTracerTrajParquet(file)).map((read) => read.trajectory));
}

describe("TracerTraj as Parquet", () => {
  it("gives back every field of any trajectory (seed printed on failure)", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(trajectory, { maxLength: 4 }), async (trajectories) => {
        expect(await roundTrip(trajectories)).toEqual(plain(trajectories));
      }),
      { numRuns: 60 },
    );
  });

  it("has the same columns where there is no row", async () => {
    expect(await roundTrip([])).toEqual([]);
    const { children } = parquetSchema(parquetMetadata(new Uint8Array(tracerTrajParquet([])).buffer));
    expect(children.map(({ element }) => element.name)).toEqual(Object.keys(trajectorySchema.shape));
  });

  it("says where half a surrogate pair could not be kept", async () => {
    const [made] = fc.sample(trajectory, { numRuns: 1, seed: 1 });
    const losses: unknown[] = [];
    const broken = { ...made, system: "a\ud800b" } as Trajectory;
    writeFileSync(join(folder, "half.parquet"), tracerTrajParquet([broken], { onLoss: (loss) => losses.push(loss) }));
    expect(losses).toMatchObject([{ field: "system", count: 1 }]);
    const [read] = await readTracerTrajParquet(join(folder, "half.parquet"));
    expect(read?.trajectory.system).toBe("a\uFFFDb");
  });

  it("names a file that is cut short", async () => {
    const file = join(folder, "cut.parquet");
    writeFileSync(file, tracerTrajParquet(fc.sample(trajectory, { numRuns: 3, seed: 2 })).subarray(0, 200));
    const error: unknown = await readTracerTrajParquet(file).catch((thrown: unknown) => thrown);
    expect(isError(error, "DATA_INVALID") && error.where).toBe(file);
  });
});
