import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { auditWhoAndWhen } from "../../src/formats/audit.ts";
import { cleanSubset, duplicateHistories } from "../../src/formats/clean-subset.ts";
import { renderAudit } from "../../src/formats/render-audit.ts";
import { readWhoAndWhen } from "../../src/formats/who-and-when/read.ts";
import { shippedPath } from "../../src/package-root.ts";
import type { Trajectory } from "../../src/trajectory/schema.ts";

const SHIPPED = shippedPath("data", "who_and_when");

// The facts were found with a separate Python script over the same files.
describe("audit of the shipped Who&When", async () => {
  const report = await auditWhoAndWhen(SHIPPED);
  const [generated, crafted] = report.subsets;

  test("126 Algorithm-Generated logs with 1,099 steps, 58 Hand-Crafted ones of 5 to 130 steps", () => {
    expect(report.subsets.map(({ subset, logs }) => [subset, logs])).toEqual([
      ["Algorithm-Generated", 126],
      ["Hand-Crafted", 58],
    ]);
    expect(generated!.steps).toEqual({ total: 1099, min: 5, median: 10, max: 10 });
    expect(crafted!.steps).toEqual({ total: 2993, min: 5, median: 32.5, max: 130 });
  });

  test("the longest Hand-Crafted log has 305k characters", () => {
    expect(crafted!.longest).toEqual({ log: "30", characters: 305_187 });
    expect(generated!.longest).toEqual({ log: "80", characters: 112_210 });
  });

  test("mistake_step is a string and counts from 0", () => {
    expect(generated!.mistakeStepTypes).toEqual({ string: 126 });
    expect(crafted!.mistakeStepTypes).toEqual({ string: 58 });
    // Counted from 1, the labels would name the speaker of their step in 22 and 12 logs only.
    expect(generated!.labelIsSpeaker).toEqual({ zeroBased: 123, oneBased: 22 });
    expect(crafted!.labelIsSpeaker).toEqual({ zeroBased: 55, oneBased: 12 });
    expect(generated!.labelSteps).toEqual({ min: 0, max: 9 });
    expect(crafted!.labelSteps).toEqual({ min: 1, max: 82 });
  });

  test("level is string, int or missing; the verdict is is_correct or is_corrected", () => {
    expect(generated!.levelTypes).toEqual({ string: 126 });
    expect(crafted!.levelTypes).toEqual({ int: 30, missing: 28 });
    expect(generated!.verdicts).toEqual({ "is_correct: false": 126 });
    expect(crafted!.verdicts).toEqual({ "is_corrected: false": 58 });
  });

  test("odd keys: labels in AG 30, mistake_type in HC 3, 29, 39, 45", () => {
    expect(generated!.oddKeys).toEqual([{ key: "labels", logs: ["30"] }]);
    expect(crafted!.oddKeys).toEqual([{ key: "mistake_type", logs: ["3", "29", "39", "45"] }]);
  });

  test("the speaker is name or role, and role carries remarks to strip", () => {
    expect([generated!.speakerField, crafted!.speakerField]).toEqual(["name", "role"]);
    expect(generated!.remarks).toEqual([]);
    expect(crafted!.remarks).toEqual([
      { raw: "Orchestrator (thought)", agent: "Orchestrator", steps: 1563 },
      { raw: "Orchestrator (-> WebSurfer)", agent: "Orchestrator", steps: 602 },
      { raw: "Orchestrator (-> Assistant)", agent: "Orchestrator", steps: 41 },
      { raw: "Orchestrator (-> FileSurfer)", agent: "Orchestrator", steps: 36 },
      { raw: "Orchestrator (termination condition)", agent: "Orchestrator", steps: 31 },
      { raw: "Orchestrator (-> ComputerTerminal)", agent: "Orchestrator", steps: 10 },
    ]);
  });

  test("hyphens belong to names", () => {
    expect(generated!.hyphenNames).toEqual(["Blu-Ray_Expert", "Location-Based_Services_Expert"]);
    expect(crafted!.hyphenNames).toEqual([]);
  });

  test("empty steps: AG 36[7], 99[5]", () => {
    expect(generated!.emptySteps).toEqual([
      { log: "36", step: 7 },
      { log: "99", step: 5 },
    ]);
    expect(crafted!.emptySteps).toEqual([]);
  });

  test("the label is not the speaker of its step in AG 14, 15, 59 and HC 20, 22, 49", () => {
    expect(generated!.labelNotSpeaker).toEqual(["14", "15", "59"]);
    expect(crafted!.labelNotSpeaker).toEqual(["20", "22", "49"]);
  });

  test("AG 22 and 51 share one history under one label, AG 117 and 121 under two", () => {
    expect(generated!.duplicateHistories).toEqual([
      { logs: ["22", "51"], sameLabel: true },
      { logs: ["117", "121"], sameLabel: false },
    ]);
    expect(crafted!.duplicateHistories).toEqual([]);
  });

  test("in ten AG logs the question does not occur in the history", () => {
    const ten = ["19", "22", "24", "51", "70", "80", "92", "104", "117", "121"];
    expect(generated!.questionNotInHistory).toEqual(ten);
    expect(crafted!.questionNotInHistory).toEqual([]);
  });

  test("45 of 58 HC questions occur in AG too", () => {
    expect(report.sharedQuestions).toEqual({ shared: 45, of: 58 });
  });

  test("the clean subset is what is left: labels on the speaker, no history twice", async () => {
    const all: Trajectory[] = [];
    for await (const { trajectory } of readWhoAndWhen(SHIPPED)) all.push(trajectory);
    const clean = new Set(cleanSubset(all).map(({ id }) => id));
    const dropped = all.map(({ id }) => id).filter((id) => !clean.has(id));
    expect(dropped).toEqual([
      ...[14, 15, 22, 51, 59, 117, 121].map((log) => `algorithm-generated/${log}`),
      ...[20, 22, 49].map((log) => `hand-crafted/${log}`),
    ]);
    expect([generated!.clean, crafted!.clean]).toEqual([119, 55]);
  });

  test("the table says all of it in plain text", () => {
    const text = renderAudit(report);
    for (const fact of ["1099", "36[7]", "14, 15, 59", "20, 22, 49", "22 = 51", "117 = 121", "305187", "45 of 58"]) {
      expect(text).toContain(fact);
    }
    expect(text).not.toContain("\u001b");
  });
});

test("histories are the same where every word is, not where only their sizes are; groups come as they first occur", async () => {
  const read: Trajectory[] = [];
  for (const name of ["1.json", "2.json"]) {
    for await (const { trajectory } of readWhoAndWhen(join(SHIPPED, "Algorithm-Generated", name)))
      read.push(trajectory);
  }
  const [first, second] = [read[0]!, read[1]!];
  const reworded = (of: Trajectory): Trajectory => ({
    ...of,
    steps: of.steps.map((step) => ({ ...step, content: [...step.content].reverse().join("") })),
  });
  const all = [reworded(first), second, reworded(second), first, second, first];
  expect(duplicateHistories(all)).toEqual([
    [second, second],
    [first, first],
  ]);
});

test("one subset alone is audited; a folder without logs is refused", async () => {
  const alone = await auditWhoAndWhen(join(SHIPPED, "Hand-Crafted"));
  expect(alone.subsets.map(({ subset }) => subset)).toEqual(["Hand-Crafted"]);
  const folder = await mkdtemp(join(tmpdir(), "rootstep-audit-"));
  await expect(auditWhoAndWhen(folder)).rejects.toMatchObject({ code: "DATA_UNKNOWN_FORMAT", where: folder });
  await rm(folder, { recursive: true });
});
