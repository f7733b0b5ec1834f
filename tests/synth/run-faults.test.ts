import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { readRunStatus } from "../../synth/ledger/read.ts";
import { recordingSchema } from "../../synth/pipeline/records.ts";
import { chatBodySchema, chatCompletion } from "../../synth/simulator/chat-wire.ts";
import { type LoopbackServer, startServer } from "../models/loopback.ts";
import { cleanUp, doneUnits, filesOf, freshRun, runIn } from "./worker-setting.ts";

const servers: LoopbackServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
  await cleanUp();
});

/** A model server that answers every prompt by this rule. */
async function modelServer(answer: (prompt: string) => string) {
  const server = await startServer(({ body }, response) => {
    const { messages } = chatBodySchema.parse(JSON.parse(body));
    const content = answer(messages.at(-1)?.content ?? "");
    response.setHeader("content-type", "application/json");
    const made = { content, toolCalls: [], finishReason: "stop", model: "loopback" } as const;
    response.end(JSON.stringify(chatCompletion("id", 0, made)));
  });
  servers.push(server);
  const { url: base } = server;
  return { provider: "openai-compatible", baseUrl: `${base}/v1`, model: "loopback", stream: false } as const;
}

const answerIn = (prompt: string): string => /^Right final answer: (.*)$/mu.exec(prompt)?.[1] ?? "";

describe("synth run with an analyzer that", () => {
  it.each<["nonsense" | "refused" | "leaked" | "rewritten", (prompt: string) => string]>([
    ["nonsense", () => "The sun is a star. {action: 3}"],
    ["refused", () => '{"action": null, "reason": "I must not"}'],
    ["leaked", (prompt) => JSON.stringify({ action: `The final answer is ${answerIn(prompt)}.`, reason: "so it is" })],
    ["rewritten", () => JSON.stringify({ action: "word ".repeat(900), reason: "all of it anew" })],
  ])(
    "only answers what counts as %s: no label, no correction kept, every attempt counted, the run complete",
    async (kind, answer) => {
      const path = freshRun();
      const report = await runIn(path, {
        settings: {
          seed: 6,
          tasks: { set: "gsm8k", limit: 8 },
          model: { provider: "simulator", regime: "systematic", noise: 0 },
          analyzer: await modelServer(answer),
          search: { strategies: ["exhaustive"], analyzerAttempts: 2, maxBlocks: 4 },
          inject: { operator: "none" },
        },
      });
      const [strategy] = report.strategies;
      expect(report.failedRuns).toBeGreaterThan(3);
      expect(strategy?.labelled.hits).toBe(0);
      expect(report.dataset).toEqual({ train: 0, test: 0 });
      expect(report.dead).toBeUndefined();
      const { asked = 0, usable = 0, corrected = 0, steps = 0, [kind]: counted = 0 } = strategy?.analyzer ?? {};
      expect(steps).toBeGreaterThan(10);
      if (kind === "leaked") {
        // Where the log already has the answer, to state it is no leak.
        expect(counted).toBeGreaterThan(asked / 2);
        expect(asked).toBe(usable + counted);
      } else expect([usable, corrected, counted, asked]).toEqual([0, 0, 2 * steps, 2 * steps]);
    },
    120_000,
  );
});

const SOLUTION = "```python\ndef double(n):\n    return 2 * n\n```";
const problem = (question_id: string, test: string) =>
  JSON.stringify({
    question_id,
    question: `Write double(n), number ${question_id}.`,
    solution: "def double(n):\n    return 2 * n",
    test: `from solution import double\n\n${test}`,
  });

describe("synth run with a checker that", () => {
  it("hangs, dies or cannot judge: a failed run with the reason, a dead letter with the reason, and all others done", async () => {
    const path = freshRun();
    const file = join(path, "..", "kodcode.jsonl");
    writeFileSync(
      file,
      [
        problem("good", "def test_a():\n    assert double(2) == 4\n"),
        problem("hangs", "def test_a():\n    while True: double(2)\n"),
        problem("dies", "import os, signal\ndef test_a():\n    os.kill(os.getpid(), signal.SIGKILL)\n"),
        problem("none", "x = 1\n"),
      ].join("\n"),
    );
    const report = await runIn(path, {
      settings: {
        tasks: { set: "kodcode", limit: 4, path: file },
        system: "coder-tester",
        model: await modelServer((prompt) =>
          prompt.includes("Turn: tester") ? "```python\nassert double(1) == 2\n```" : SOLUTION,
        ),
        search: { strategies: ["paper"], analyzerAttempts: 1 },
        inject: { operator: "none" },
      },
    });
    expect(report.runs).toBe(3);
    expect(report.dead).toEqual({ record: 1 });
    expect(readRunStatus(path).dead).toMatchObject([{ key: "kodcode-none", code: "CHECKER_FAILED" }]);
    const recorded = readFileSync(join(path, "recordings.jsonl"), "utf8").trim().split("\n");
    const outcomes = recorded.map((line) => recordingSchema.parse(JSON.parse(line)));
    expect(outcomes.map(({ id, outcome: { success, detail = "" } }) => [id, success, detail])).toEqual([
      ["kodcode-good", true, ""],
      ["kodcode-hangs", false, "the program met its limit: processor time"],
      ["kodcode-dies", false, "the program ended before the last test"],
    ]);
  }, 300_000);
});

const SETTINGS = {
  tasks: { set: "chain", limit: 40 },
  model: { provider: "simulator", regime: "systematic", hardRate: 0.5, noise: 0.02 },
} as const;
const mount = (folder: string, size: string): boolean =>
  spawnSync("mount", ["-t", "tmpfs", "-o", `size=${size}`, "tmpfs", folder]).status === 0;
const mayMount = ((): boolean => {
  const folder = freshRun();
  mkdirSync(folder);
  const mounted = mount(folder, "64k");
  if (mounted) spawnSync("umount", [folder]);
  rmSync(folder, { recursive: true });
  return mounted;
})();
if (!mayMount) console.log("skipped: a disk that is full: no right to mount a small one here");

describe("a disk that is full while the dataset is written", () => {
  it.runIf(mayMount)(
    "ends the run with an error that names the file; no half file is left, and with room it is the undisturbed one",
    async () => {
      const [alone, out] = [freshRun(), freshRun()];
      await runIn(alone, { settings: SETTINGS });
      const dataset = join(out, "dataset");
      mkdirSync(dataset, { recursive: true });
      expect(mount(dataset, "32k")).toBe(true);
      try {
        await expect(runIn(out, { settings: SETTINGS })).rejects.toMatchObject({
          code: "FILE_UNREADABLE",
          where: expect.stringContaining("dataset"),
        });
        const whole = new Map(filesOf(alone).map((line) => [line.split(" ")[0], line]));
        for (const line of filesOf(out)) {
          const [name = ""] = line.split(" ");
          if (name.startsWith("dataset/")) expect([name, line]).toEqual([name, whole.get(name)]);
        }
        expect(existsSync(join(out, "report.json"))).toBe(false);
      } finally {
        spawnSync("umount", [dataset]);
      }
      await runIn(out, { settings: SETTINGS });
      expect(filesOf(out)).toEqual(filesOf(alone));
      expect(readdirSync(dataset).sort()).toEqual(readdirSync(join(alone, "dataset")).sort());
    },
    120_000,
  );
});

describe("two coordinators on one run", () => {
  it("the second is refused while the first works, and changes nothing of what the first makes", async () => {
    const [alone, out] = [freshRun(), freshRun()];
    await runIn(alone, { settings: SETTINGS });
    const first = runIn(out, { settings: SETTINGS });
    let refusals = 0;
    let ended = false;
    void first.finally(() => {
      ended = true;
    });
    while (!ended) {
      if (doneUnits(out) > 0 && refusals < 5) {
        const attempt = runIn(out, { settings: SETTINGS });
        await expect(attempt).rejects.toMatchObject({ code: "RUN_LOCKED" });
        refusals++;
      }
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    await first;
    expect(refusals).toBeGreaterThan(0);
    expect(filesOf(out)).toEqual(filesOf(alone));
  }, 120_000);
});
