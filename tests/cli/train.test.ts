import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { EXIT } from "../../src/errors.ts";
import { predictionSchema } from "../../src/evaluation/prediction.ts";
import { saveCheckpoint } from "../../trainer/checkpoints.ts";
import { tinkerProfile } from "../../trainer/engines/tinker/profiles.ts";
import { openTextCodec } from "../../trainer/text-codec.ts";
import { feedMessageSchema } from "../../trainer/training-feed-contract.ts";
import { createSayingEngine, writeByteModel } from "../trainer/byte-model.ts";
import { labelledRuns } from "../trainer/embedded/support.ts";
import { startTinkerServer, type TinkerServer } from "../trainer/tinker-server.ts";
import { cli, freshPath, startCli } from "./run-cli.ts";

const run = freshPath("tracer");
const folder = dirname(run);
const data = join(folder, "runs.jsonl");
const SMALL = ["--steps", "2", "--prompts-per-step", "2", "--group-size", "4", "--dead-groups", "keep"];

beforeAll(async () => {
  const runs = labelledRuns("train cli", 8);
  writeFileSync(data, runs.map((trajectory) => `${JSON.stringify(trajectory)}\n`).join(""));
  const { code, stderr } = await cli(["train", "run", ...SMALL, "--data", data, "--out", run]);
  expect(code, stderr).toBe(EXIT.ok);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const linesOf = (text: string): unknown[] =>
  text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));

describe("train status", () => {
  it("is one JSON document with the run's state", async () => {
    const { stdout, code } = await cli(["train", "status", run, "--json"]);
    expect(code).toBe(EXIT.ok);
    expect(JSON.parse(stdout)).toMatchObject({
      kind: "grpo",
      stepsDone: 2,
      state: { state: "finished", reason: null },
      metrics: [{ staleness: { steps: 0, versions: 0 } }, { lengths: { mean: expect.any(Number) } }],
    });
    expect((await cli(["train", "status", run])).stdout).toContain("grpo run, finished, 2 of 2 steps done");
  });

  it("draws the run's course into one file that needs no other", async () => {
    const page = join(folder, "course.html");
    const { stdout, code } = await cli(["train", "status", run, "--html", page]);
    expect(code).toBe(EXIT.ok);
    expect(stdout).toContain(`plots in ${page}`);
    const html = readFileSync(page, "utf8");
    for (const title of ["Mean reward", "Parts of the reward", "Clipped tokens"]) expect(html).toContain(title);
    expect(html.match(/<svg/gu)?.length).toBeGreaterThan(5);
    expect(html).not.toMatch(/<(?:script|link|img)[^>]+(?:src|href)=/u);
  });

  it("watches a run that is under way until it ends: lines of JSON of the feed's contract, and lines for people", async () => {
    const live = join(folder, "live");
    const training = startCli(["train", "run", ...SMALL, "--steps", "4", "--data", data, "--out", live]);
    await expect.poll(() => statusCode(live), { timeout: 120_000, interval: 500 }).toBe(EXIT.ok);
    const [json, text] = await Promise.all([
      cli(["train", "status", live, "--watch", "--json"]),
      cli(["train", "status", live, "--watch"]),
    ]);
    expect((await training.finished).code).toBe(EXIT.ok);
    const messages = linesOf(json.stdout).map((line) => feedMessageSchema.parse(line));
    expect(messages.filter(({ event }) => event.kind === "metric")).toHaveLength(4);
    expect(messages.at(-1)?.event).toMatchObject({ kind: "state", state: "finished" });
    expect(text.stdout).toMatch(/step 3: reward [\d.]+; format .*%, step .*%, agent .*%; clip /u);
    expect(text.stdout.trim().split("\n").at(-1)).toBe("finished");
  });

  /** OK once the run has noted its start. */
  async function statusCode(path: string): Promise<number | null> {
    const { code, stdout } = await cli(["train", "status", path, "--json"]);
    return code === EXIT.ok && JSON.parse(stdout).state.state !== "stopped" ? EXIT.ok : EXIT.failed;
  }

  it("ends a watch at Ctrl-C", async () => {
    const open = join(folder, "open");
    await cli(["train", "run", ...SMALL, "--data", data, "--out", open]);
    const [started] = linesOf(readFileSync(join(open, "events.jsonl"), "utf8"));
    // As if this very process were training there.
    writeFileSync(join(open, "events.jsonl"), `${JSON.stringify(Object.assign({}, started, { pid: process.pid }))}\n`);
    const watch = startCli(["train", "status", open, "--watch"]);
    await watch.seen("running");
    watch.child.kill("SIGINT");
    expect((await watch.finished).stdout).toContain("step 1: reward");
  });
});

it("train run says in the run's course that its engine could not be reached", async () => {
  const lost = join(folder, "lost");
  const model = writeByteModel(join(folder, "bytes-lost"));
  const engine = ["--engine.kind", "tinker", "--engine.profile", "skyrl-train", "--engine.base-model", "m"];
  const servers = ["--engine.model-folder", model, "--servers.engine", "http://127.0.0.1:9"];
  const { code, stderr } = await cli(["train", "run", ...SMALL, ...engine, ...servers, "--data", data, "--out", lost]);
  expect(code).toBe(EXIT.failed);
  expect(stderr).toContain("MODEL_UNREACHABLE");
  const { stdout } = await cli(["train", "status", lost, "--json"]);
  expect(JSON.parse(stdout).state).toMatchObject({ state: "failed", code: "MODEL_UNREACHABLE" });
});

describe("train eval", () => {
  it("of an embedded checkpoint gives what eval run gives", async () => {
    const settings = ["--with-reference", "--data.files", data, "--json"];
    const ours = await cli(["train", "eval", run, ...settings, "--out", join(folder, "eval-a")]);
    expect(ours.code, ours.stderr).toBe(EXIT.ok);
    const theirs = await cli([
      "eval",
      "run",
      "--method",
      "tracer",
      "--checkpoint",
      run,
      ...settings,
      "--out",
      join(folder, "eval-b"),
    ]);
    expect(JSON.parse(ours.stdout).scores.overall).toEqual(JSON.parse(theirs.stdout).scores.overall);
    expect(JSON.parse(ours.stdout)).toMatchObject({ data: JSON.parse(theirs.stdout).data });
  });

  describe("of a checkpoint on a training server", () => {
    const BASE = "Qwen/Qwen3-8B";
    const MAX_PROMPT = 12_000;
    const profile = tinkerProfile("skyrl-train");
    const prompts: string[] = [];
    let server: TinkerServer;
    let checkpoint: string;
    beforeAll(async () => {
      const answer = "<think>The search looked at another year.</think><answer>WebSurfer | 3</answer>";
      const openEngine = async () =>
        createSayingEngine((prompt) => {
          prompts.push(prompt);
          return answer;
        });
      server = await startTinkerServer({ profile, baseModel: BASE, openEngine, readPrompt: (tokens) => tokens });
      const modelFolder = writeByteModel(join(folder, "bytes"));
      const codec = openTextCodec({ folder: modelFolder, maxPrompt: MAX_PROMPT, templateOptions: {} });
      const engine = {
        kind: "tinker",
        profile: profile.id,
        baseModel: BASE,
        modelFolder,
        loraRank: 4,
        loraSeed: 0,
        maxPrompt: MAX_PROMPT,
        maxCompletion: 200,
        templateOptions: {},
      } as const;
      const path = server.store({ weights: new Uint8Array([1]), optimizer: new Uint8Array([2]) });
      const reference = Buffer.from(JSON.stringify({ tinker: 1, path }));
      checkpoint = await saveCheckpoint(
        join(folder, "served", "checkpoints"),
        {
          kind: "grpo",
          stepsDone: 40,
          reason: "final",
          configHash: "c",
          dataHash: "d",
          engine: "tinker:skyrl-train:Qwen3-8B",
          policy: { engine, codec: codec.id },
          loop: {},
        },
        { weights: reference, optimizer: reference },
      );
    });
    afterAll(() => server.close());

    it("runs over Who&When; logs that do not fit are cut, every step keeps its line, and what was cut is on record", async () => {
      const out = join(folder, "eval-served");
      const where = ["--servers.engine", server.url.href, "--data.subset", "hand-crafted", "--limit", "3"];
      const { code, stderr, stdout } = await cli(["train", "eval", checkpoint, ...where, "--out", out, "--json"]);
      expect(code, stderr).toBe(EXIT.ok);
      expect(JSON.parse(stdout).set).toContain("Who&When");
      const predictions = linesOf(readFileSync(join(out, "predictions.jsonl"), "utf8")).map((line) =>
        predictionSchema.parse(line),
      );
      expect(predictions).toHaveLength(3);
      for (const { agent, step, parsePath, cut } of predictions) {
        expect([agent, step, parsePath]).toEqual(["WebSurfer", 3, "format-gate"]);
        expect(cut?.charactersCut).toBeGreaterThan(0);
      }
      expect(prompts).toHaveLength(3);
      for (const prompt of prompts) {
        expect(Buffer.byteLength(prompt)).toBeLessThanOrEqual(MAX_PROMPT);
        const [, last] = /Log \(steps 0 to (\d+)\)/u.exec(prompt) ?? [];
        const shown = prompt.slice(prompt.indexOf("Log (steps"));
        for (let step = 0; step <= Number(last); step++) expect(shown).toMatch(new RegExp(`\\b${step}\\b`, "u"));
      }
      expect(server.models).toEqual([]);
    });

    it.each([
      [[], EXIT.usage, "CONFIG_INVALID", "--servers.engine URL"],
      [["--servers.engine", "http://127.0.0.1:9"], EXIT.failed, "MODEL_UNREACHABLE", "127.0.0.1:9"],
    ] as const)("with %j it is refused with what, where and what to do", async (where, exit, error, text) => {
      const out = join(folder, `eval-${error}`);
      const { code, stderr } = await cli(["train", "eval", checkpoint, ...where, "--limit", "1", "--out", out]);
      expect(code).toBe(exit);
      expect(stderr).toContain(`error ${error}: `);
      expect(stderr).toContain(text);
    });

    it("is refused once the server has lost it", async () => {
      const openEngine = async () => createSayingEngine(() => "");
      const other = await startTinkerServer({ profile, baseModel: BASE, openEngine });
      try {
        const args = ["--servers.engine", other.url.href, "--limit", "1", "--out", join(folder, "eval-gone")];
        const { code, stderr } = await cli(["train", "eval", checkpoint, ...args]);
        expect(code).toBe(EXIT.failed);
        expect(stderr).toContain("error CHECKPOINT_GONE: the training server no longer holds the weights of step 40");
      } finally {
        await other.close();
      }
    });
  });
});
