import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RootstepError } from "../../src/errors.ts";
import { dataChoiceSchema, loadData } from "../../src/evaluation/data.ts";
import { lossCollector } from "../../src/formats/format.ts";
import { detectFormat, formatById } from "../../src/formats/registry.ts";
import { trajectorySchema } from "../../src/trajectory/schema.ts";
import { readAll } from "./format.conformance.ts";

const format = formatById("agentrx");
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "rootstep-agentrx-"));
});
afterAll(() => rm(folder, { recursive: true }));

// Laid out as the data folder of github.com/microsoft/AgentRx at f228165, with made-up content.
const failure = (id: number | string, step: number, agent: string) => ({
  failure_id: id,
  step_number: step,
  step_reason: `at step ${step}`,
  failure_category: "Invention of New Information",
  category_reason: "made up",
  failed_agent: agent,
});
const annotation = (id: number | string, failures: unknown[], root: number | string) => ({
  trajectory_id: id,
  failures,
  root_cause: { failure_id: root, reason_for_root_cause: "nothing after it could mend it" },
  failure_summary: "it went wrong",
});
const magentic = [
  { role: "human", content: "Which year?\n" },
  { role: "Orchestrator (thought)", content: "A plan." },
  { role: "Orchestrator (-> WebSurfer)", content: "Search." },
  { role: "WebSurfer", content: "1987" },
];
const tau = {
  task_id: 12,
  reward: 0,
  info: { task: { instruction: "You want a refund.", outputs: ["42"], actions: [{ name: "refund", kwargs: {} }] } },
  traj: [
    { role: "system", content: "Policy.", index: 1 },
    { role: "user", content: "Hi", index: 2 },
    {
      role: "assistant",
      content: null,
      tool_calls: [{ id: "c1", type: "function", function: { name: "find", arguments: "{}" } }],
      index: 3,
    },
    { role: "tool", tool_call_id: "c1", name: "find", content: "none", index: 4 },
  ],
  trial: 0,
};
const whole = {
  "ground_truth/magentic_one_ground_truth.json": [
    annotation("g-1", [failure(1, 3, "Orchestrator"), failure(2, 4, "Websurfer")], "2"),
  ],
  "ground_truth/tau_ground_truth.json": [annotation(12, [failure(1, 3, "Assistant")], 1)],
  "ground_truth/magentic_star_ids.json": ["g-1"],
  "magentic_dataset/g-1.json": magentic,
  "magentic_dataset/g-2.json": magentic,
  "magentic_dataset/steps_by_id.json": { "g-1": 4 },
  "tau_retail/tau_dataset_failed.json": [tau],
};

async function release(files: Readonly<Record<string, unknown>>): Promise<string> {
  const path = await mkdtemp(join(folder, "data-"));
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(path, name)), { recursive: true });
    await writeFile(join(path, name), typeof content === "string" ? content : JSON.stringify(content));
  }
  return path;
}

describe("AgentRx", () => {
  it("is recognised by its ground_truth folder, and other folders are not", async () => {
    expect((await detectFormat(await release(whole))).id).toBe("agentrx");
    expect(await format.detect(await release({ "ground_truth/other.json": [] }))).toBe(0);
    expect(await format.detect(await release({ "a.json": [] }))).toBe(0);
    await expect(format.detect(join(folder, "nowhere"))).rejects.toMatchObject({ code: "FILE_MISSING" });
  });

  it("gives a step per message, the root cause as the label, counted from 0 now", async () => {
    const { read, thrown } = await readAll(format, await release(whole));
    expect(thrown).toBeUndefined();
    const [one, two] = read;
    expect(read.map(({ id }) => id)).toEqual(["magentic-one/g-1", "tau-retail/12"]);
    for (const trajectory of read) expect(trajectorySchema.parse(trajectory)).toEqual(trajectory);
    expect(one!.labels).toMatchObject([{ agent: "Websurfer", step: 3, source: "human" }]);
    expect(one!.provenance.conversions).toEqual(["step_number: counted from 1 (4), now from 0 (3)"]);
    expect(one!.task).toMatchObject({ id: "g-1", groupId: "g-1", text: "Which year?" });
    expect(one!.steps.map(({ agent }) => agent)).toEqual(magentic.map(({ role }) => role));
    expect(one!.extra!.failures).toHaveLength(2);
    expect(two!.labels).toMatchObject([{ agent: "Assistant", step: 2 }]);
    expect(two!.task).toMatchObject({ text: "You want a refund.", referenceAnswer: "42" });
    expect(two!.steps[2]).toMatchObject({ content: "", toolCalls: [{ id: "c1", name: "find", arguments: "{}" }] });
    expect(two!.steps[3]).toMatchObject({ agent: "tool", kind: "tool", content: "none" });
  });

  it("says how many runs have no annotation", async () => {
    const { onLoss, losses } = lossCollector();
    await readAll(format, await release(whole), { onLoss });
    expect(losses()).toEqual([{ field: "magentic-one", count: 1, why: "runs without an annotation" }]);
  });

  it("reads one domain where the other is not there", async () => {
    const { "ground_truth/tau_ground_truth.json": _, ...rest } = whole;
    expect((await readAll(format, await release(rest))).read).toHaveLength(1);
  });

  it.each<[string, Record<string, unknown>, string, string]>([
    [
      "a root cause that is no failure",
      { "ground_truth/tau_ground_truth.json": [annotation(12, [failure(1, 3, "Assistant")], 9)] },
      "DATA_INVALID",
      "tau_ground_truth.json[0] root_cause.failure_id",
    ],
    [
      "a step outside the run",
      { "ground_truth/tau_ground_truth.json": [annotation(12, [failure(1, 5, "Assistant")], 1)] },
      "LABEL_OUTSIDE",
      "tau_ground_truth.json[0]",
    ],
    [
      "step 0, where steps are counted from 1",
      { "ground_truth/tau_ground_truth.json": [annotation(12, [failure(1, 0, "Assistant")], 1)] },
      "LABEL_OUTSIDE",
      "tau_ground_truth.json[0]",
    ],
    [
      "messages that are numbered otherwise",
      { "tau_retail/tau_dataset_failed.json": [{ ...tau, traj: tau.traj.map((m) => ({ ...m, index: m.index - 1 })) }] },
      "DATA_INVALID",
      "tau_dataset_failed.json[0] traj[0].index",
    ],
    [
      "a run that is not there",
      { "tau_retail/tau_dataset_failed.json": [] },
      "DATA_INVALID",
      "tau_dataset_failed.json",
    ],
    [
      "one run annotated twice",
      {
        "ground_truth/tau_ground_truth.json": [
          annotation(12, [failure(1, 3, "Assistant")], 1),
          annotation("12", [failure(1, 3, "Assistant")], 1),
        ],
      },
      "DATA_DUPLICATE_ID",
      "tau_ground_truth.json[1]",
    ],
    ["labels that are no list", { "ground_truth/tau_ground_truth.json": {} }, "DATA_INVALID", "tau_ground_truth.json"],
    ["a file that is not JSON", { "magentic_dataset/g-1.json": "[}" }, "DATA_NOT_JSON", "g-1.json"],
  ])("names the place of %s, and goes on when told", async (_, broken, code, where) => {
    const source = await release({ ...whole, ...broken });
    const { thrown } = await readAll(format, source);
    expect(thrown).toMatchObject({ code, where: expect.stringContaining(where) });
    const bad: RootstepError[] = [];
    const { read, thrown: none } = await readAll(format, source, { onBad: (error) => bad.push(error) });
    expect(none).toBeUndefined();
    expect(bad).toMatchObject([{ code }]);
    expect(read.length).toBeGreaterThan(0);
  });

  it("can be evaluated on, a column per domain, with a checksum of what was read", async () => {
    const source = await release(whole);
    const set = await loadData(dataChoiceSchema.parse({ folder: source }));
    expect(set.items.map(({ subset, label }) => [subset, label.step])).toEqual([
      ["AgentRx Magentic-One", 3],
      ["AgentRx tau-retail", 2],
    ]);
    await writeFile(join(source, "magentic_dataset", "g-1.json"), JSON.stringify([...magentic, magentic[1]]));
    expect((await loadData(dataChoiceSchema.parse({ folder: source }))).version).not.toEqual(set.version);
  });
});
