import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RootstepError } from "../../src/errors.ts";
import { lossCollector } from "../../src/formats/format.ts";
import { detectFormat, formatById } from "../../src/formats/registry.ts";
import { validateFile } from "../../src/formats/validate.ts";
import { WHO_AND_WHEN_SUBSETS } from "../../src/formats/who-and-when/subsets.ts";
import { writeWhoAndWhen } from "../../src/formats/who-and-when/write.ts";
import { shippedPath } from "../../src/package-root.ts";
import { type Trajectory, trajectorySchema } from "../../src/trajectory/schema.ts";
import { anyExtra, anyName, anyText } from "./arbitrary-trajectory.ts";
import { formatConformance, readAll } from "./format.conformance.ts";

const SHIPPED = shippedPath("data", "who_and_when");
const format = { ...formatById("who-and-when"), write: writeWhoAndWhen };

/** Names of fields that Who&When or its reader give a meaning of their own. */
const TAKEN = new Set(["subset", "is_correct", "is_corrected", "content", "role", "name"]);
for (const field of ["question", "question_ID", "ground_truth", "history"]) TAKEN.add(field);
for (const field of ["mistake_agent", "mistake_step", "mistake_reason"]) TAKEN.add(field);
const anyFreeExtra = anyExtra.filter((extra) => Object.keys(extra).every((key) => !TAKEN.has(key)));

/** Trajectories as Who&When can hold them: one human label, messages only. */
const anyWhoAndWhen: fc.Arbitrary<Trajectory> = fc
  .record({
    subset: fc.constantFrom(...WHO_AND_WHEN_SUBSETS),
    stem: fc.nat({ max: 999 }),
    question: anyText,
    questionId: anyName,
    truth: fc.option(anyText, { nil: undefined }),
    reason: fc.option(anyText, { nil: undefined }),
    blamed: anyName,
    at: fc.nat(),
    success: fc.boolean(),
    extra: anyFreeExtra,
    entries: fc.array(fc.record({ agent: anyName, role: anyText, content: anyText, extra: anyFreeExtra }), {
      minLength: 1,
      maxLength: 6,
    }),
  })
  .map(
    ({ subset, stem, entries, ...of }): Trajectory => ({
      schemaVersion: 1,
      id: `${subset.slug}/${stem}`,
      task: {
        id: of.questionId,
        text: of.question,
        ...(of.truth === undefined ? {} : { referenceAnswer: of.truth }),
        source: "who-and-when",
        groupId: of.questionId,
      },
      system: subset.system,
      stepPolicy: "framework-log",
      steps: entries.map(({ agent, role, content, extra }, index) => ({
        index,
        agent,
        role: subset.speaker === "role" ? agent : role,
        kind: "message",
        content,
        toolCalls: [],
        retrieved: [],
        callIds: [],
        ...(Object.keys(extra).length === 0 ? {} : { extra }),
      })),
      outcome: { success: of.success, checker: "who-and-when" },
      labels: [
        {
          agent: of.blamed,
          step: of.at % entries.length,
          source: "human",
          ...(of.reason === undefined ? {} : { reason: of.reason }),
        },
      ],
      provenance: {
        kind: "imported",
        simulated: false,
        format: "who-and-when",
        file: `${subset.folder}/${stem}.json`,
        conversions: [],
      },
      extra: { ...of.extra, [subset.verdict]: of.success, subset: subset.folder },
    }),
  );

formatConformance({
  format,
  trajectories: fc.uniqueArray(anyWhoAndWhen, { minLength: 1, maxLength: 5, selector: ({ id }) => id }),
  target: (folder) => join(folder, "logs"),
  plant: async (folder, good, bad) => {
    const place = join(folder, "Hand-Crafted");
    await mkdir(place);
    // The bad file is numbered between the good ones, whose order is numeric: 9 < 10 < 11.
    const numbers = Array.from({ length: 2 * good + 1 }, (_, i) => 9 + i);
    const badNumber = numbers[good]!;
    for (const number of numbers) {
      const file = join(place, `${number}.json`);
      if (number === badNumber) await writeFile(file, bad);
      else await cp(join(SHIPPED, "Hand-Crafted", "24.json"), file);
    }
    return { source: folder, where: join(place, `${badNumber}.json`) };
  },
});

describe("the release", () => {
  const original = async (folder: string, number: string): Promise<Record<string, unknown>> =>
    JSON.parse(await readFile(join(SHIPPED, folder, number), "utf8"));

  test("184 logs, Algorithm-Generated first, each half in numeric order, all satisfying the schema", async () => {
    const { read } = await readAll(format, SHIPPED);
    const ids = [
      ...Array.from({ length: 126 }, (_, i) => `algorithm-generated/${i + 1}`),
      ...Array.from({ length: 58 }, (_, i) => `hand-crafted/${i + 1}`),
    ];
    expect(read.map((trajectory) => trajectory.id)).toEqual(ids);
    for (const trajectory of read) expect(trajectorySchema.parse(trajectory)).toEqual(trajectory);
  });

  test("one log, field by field", async () => {
    const source = join(SHIPPED, "Algorithm-Generated", "30.json");
    const { read } = await readAll(format, source);
    const json = await original("Algorithm-Generated", "30.json");
    const history = json.history as { content: string; role: string; name: string }[];
    expect(read).toEqual([
      {
        schemaVersion: 1,
        id: "algorithm-generated/30",
        task: {
          id: json.question_ID,
          text: json.question,
          referenceAnswer: json.ground_truth,
          source: "who-and-when",
          groupId: json.question_ID,
        },
        system: "captain-agent",
        stepPolicy: "framework-log",
        steps: history.map(({ content, role, name }, index) => ({
          index,
          agent: name,
          role,
          kind: "message",
          content,
          toolCalls: [],
          retrieved: [],
          callIds: [],
        })),
        outcome: { success: false, checker: "who-and-when" },
        labels: [
          {
            agent: json.mistake_agent,
            step: Number(json.mistake_step),
            source: "human",
            reason: json.mistake_reason,
          },
        ],
        provenance: {
          kind: "imported",
          simulated: false,
          format: "who-and-when",
          file: "Algorithm-Generated/30.json",
          conversions: [],
        },
        extra: {
          subset: "Algorithm-Generated",
          is_correct: false,
          level: json.level,
          labels: "Factual_Error",
          system_prompt: json.system_prompt,
        },
      },
    ]);
  });

  test("Hand-Crafted speakers keep their remarks raw", async () => {
    const { read } = await readAll(format, join(SHIPPED, "Hand-Crafted", "1.json"));
    const [log] = read;
    expect(log).toMatchObject({ id: "hand-crafted/1", system: "magentic-one", extra: { subset: "Hand-Crafted" } });
    expect(log!.steps.slice(0, 2).map(({ agent, role }) => [agent, role])).toEqual([
      ["human", "human"],
      ["Orchestrator (thought)", "Orchestrator (thought)"],
    ]);
  });

  test("a folder of one subset and a single file give the same trajectories as the whole", async () => {
    const { read: whole } = await readAll(format, SHIPPED);
    const { read: crafted } = await readAll(format, join(SHIPPED, "Hand-Crafted"));
    const { read: one } = await readAll(format, join(SHIPPED, "Hand-Crafted", "17.json"));
    expect(crafted).toEqual(whole.slice(126));
    expect(one).toEqual([whole[126 + 16]]);
    for (const path of [SHIPPED, join(SHIPPED, "Hand-Crafted"), join(SHIPPED, "Hand-Crafted", "17.json")]) {
      expect((await detectFormat(path)).id).toBe("who-and-when");
    }
  });

  test("all 184 files come back as the same JSON, with nothing reported lost", async () => {
    const target = join(await mkdtemp(join(tmpdir(), "rootstep-waw-")), "copy");
    const { onLoss, losses } = lossCollector();
    const { read } = await readAll(format, SHIPPED, { onLoss });
    await format.write(read, target, { onLoss });
    let compared = 0;
    for (const { folder } of WHO_AND_WHEN_SUBSETS) {
      const names = await readdir(join(SHIPPED, folder));
      expect((await readdir(join(target, folder))).sort()).toEqual(names.sort());
      for (const name of names) {
        expect(JSON.parse(await readFile(join(target, folder, name), "utf8"))).toEqual(await original(folder, name));
        compared++;
      }
    }
    expect(compared).toBe(184);
    expect(losses()).toEqual([]);
    await rm(join(target, ".."), { recursive: true });
  });

  test("validates without fault; the known oddities are reported as facts", async () => {
    const { records, faults, inconsistencies } = await validateFile(SHIPPED);
    expect({ records, faults }).toEqual({ records: 184, faults: [] });
    const of = (kind: string): string[] => inconsistencies.filter((fact) => fact.kind === kind).map(({ id }) => id);
    expect(of("label-not-speaker")).toEqual([
      "algorithm-generated/14",
      "algorithm-generated/15",
      "algorithm-generated/59",
      "hand-crafted/20",
      "hand-crafted/22",
      "hand-crafted/49",
    ]);
    expect(of("empty-step")).toEqual(["algorithm-generated/36", "algorithm-generated/99"]);
    expect(inconsistencies).toHaveLength(8);
  });
});

describe("faulty Who&When files", () => {
  let folder = "";
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "rootstep-waw-bad-"));
    await mkdir(join(folder, "Algorithm-Generated"));
  });
  afterAll(async () => {
    await rm(folder, { recursive: true, force: true });
  });
  const good = {
    question: "2 + 2?",
    question_ID: "q",
    ground_truth: "4",
    history: [{ content: "5", role: "user", name: "Solver" }],
    mistake_agent: "Solver",
    mistake_step: "0",
    mistake_reason: "wrong",
    is_correct: false,
  };
  const errorOf = async (record: unknown, place = "Algorithm-Generated"): Promise<RootstepError> => {
    const file = join(folder, place, "7.json");
    await mkdir(join(folder, place), { recursive: true });
    await writeFile(file, typeof record === "string" ? record : JSON.stringify(record));
    const { thrown } = await readAll(format, file);
    return thrown as RootstepError;
  };

  test.each([
    ["a step that is no integer", { ...good, mistake_step: "1.5" }, "DATA_INVALID", "mistake_step"],
    ["a step in words", { ...good, mistake_step: "first" }, "DATA_INVALID", "mistake_step"],
    ["an empty step", { ...good, mistake_step: "" }, "DATA_INVALID", "mistake_step"],
    ["a step that is null", { ...good, mistake_step: null }, "DATA_INVALID", "mistake_step"],
    ["a label behind the log", { ...good, mistake_step: "1" }, "LABEL_OUTSIDE", "labels[0].step"],
    ["a label before the log", { ...good, mistake_step: "-1" }, "LABEL_OUTSIDE", "labels[0].step"],
    ["no question", { ...good, question: undefined }, "DATA_INVALID", "question"],
    ["no question_ID", { ...good, question_ID: undefined }, "DATA_INVALID", "question_ID"],
    ["no agent", { ...good, mistake_agent: undefined }, "DATA_INVALID", "mistake_agent"],
    ["no history", { ...good, history: undefined }, "DATA_INVALID", "history"],
    ["an empty history", { ...good, history: [] }, "DATA_INVALID", "steps"],
    [
      "a step without content",
      { ...good, history: [{ role: "user", name: "A" }] },
      "DATA_INVALID",
      "history[0].content",
    ],
    [
      "a step without speaker",
      { ...good, history: [{ content: "", role: "user" }] },
      "DATA_INVALID",
      "history[0].name",
    ],
    ["a cut file", JSON.stringify(good).slice(0, 60), "DATA_TRUNCATED", ""],
    ["an empty file", "", "DATA_TRUNCATED", ""],
    ["bad JSON", `${JSON.stringify(good)}}`, "DATA_NOT_JSON", ""],
  ])("%s is refused with file and JSON path", async (_, record, code, path) => {
    const error = await errorOf(record);
    expect(error).toMatchObject({ code });
    expect(error.where).toBe(`${join(folder, "Algorithm-Generated", "7.json")}${path === "" ? "" : ` ${path}`}`);
  });

  test("a step given as a number is read, and the conversion recorded", async () => {
    expect(await errorOf({ ...good, mistake_step: 0 })).toBeUndefined();
    const { read } = await readAll(format, folder);
    expect(read[0]).toMatchObject({ labels: [{ step: 0 }], provenance: { conversions: [expect.any(String)] } });
  });

  test("outside the release's folders the entries say which half it is", async () => {
    expect(await errorOf(good, "my-logs")).toBeUndefined();
    expect((await readAll(format, join(folder, "my-logs"))).read[0]!.id).toBe("algorithm-generated/7");
    expect(await errorOf({ ...good, history: [{ content: "5", role: "Solver" }] }, "my-logs")).toBeUndefined();
    const { read } = await readAll(format, join(folder, "my-logs"));
    expect(read[0]).toMatchObject({ id: "hand-crafted/7", steps: [{ agent: "Solver" }] });
  });
});
