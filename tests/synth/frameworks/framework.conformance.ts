import { rmSync } from "node:fs";
import { dirname } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { preloadEnvironment } from "../../../synth/determinism/preload.ts";
import type { Action } from "../../../synth/proxy/action.ts";
import { identityFaults } from "../../../synth/proxy/identity.ts";
import { type RecordReport, recordProgram } from "../../../synth/proxy/record-program.ts";
import { type ReplayProgramOptions, type ReplayReport, replayProgram } from "../../../synth/proxy/replay-program.ts";
import { knowledgeOf } from "../../../synth/simulator/knowledge.ts";
import { serveSimulator } from "../../../synth/simulator/server.ts";
import { simulatedModel, simulatorConfigSchema } from "../../../synth/simulator/simulator.ts";
import { installed, requireInstalled } from "../../../synth/systems/installation.ts";
import type { ProgramSystem } from "../../../synth/systems/program-system.ts";
import { systemProgram, systemTask } from "../../../synth/systems/system-program.ts";
import { foldRetries } from "../../../synth/tape/fold.ts";
import type { StoredCall } from "../../../synth/tape/folder-schema.ts";
import { loadTape, type TapeFolder } from "../../../synth/tape/loader.ts";
import { validateTape } from "../../../synth/tape/validate.ts";
import { gsm8k } from "../../../synth/tasks/gsm8k.ts";
import { freshFolder, TOKEN } from "../proxy-setting.ts";
import { CORRECTED, correctionOf } from "./correction.ts";
import { failing } from "./failing.ts";

export interface FrameworkExpectation {
  readonly system: ProgramSystem;
  /** Model calls by lane on the suite's task, which has three calculations. */
  readonly lanes: Readonly<Record<string, number>>;
  /** Lanes in the order of the calls, of a framework that asks one at a time. */
  readonly order?: readonly string[];
  /** What a replay of a run recorded without the preload does. */
  readonly withoutPreload: "exact" | "masked" | { readonly cannot: string };
  /** Statuses that the client answers with a retry of its own. */
  readonly retries?: readonly number[];
  /** A corrected answer in place of the recorded one, where replacing the stated result in it will not do. */
  readonly correction?: (recorded: string) => Action;
}

/** Where the suite may not be skipped: CI installs these (scripts/ci/install-systems.sh). */
const isRequired = ({ heavy, install: { kind } }: ProgramSystem): boolean =>
  process.env.ROOTSTEP_REQUIRE_SYSTEMS === "1" && heavy !== true && kind === "lock";

interface Recorded {
  readonly report: RecordReport;
  readonly tape: TapeFolder;
  again(changes?: Partial<ReplayProgramOptions>): Promise<ReplayReport>;
}

let runs = 0;

/**
 * What every framework's adapter has to do, with the framework itself, against the simulator over loopback: be recorded,
 * be replayed with no live call, go another way after a corrected answer.
 */
export function describeFramework(expectation: FrameworkExpectation): void {
  const { system, lanes, order, withoutPreload, retries = [429, 500] } = expectation;
  const here = installed(system, process.env);
  if (here.state === "missing" && !isRequired(system)) {
    describe.skip(`${system.id} (not installed here: ${here.do})`, () => it("runs", () => {}));
    return;
  }

  describe(system.id, () => {
    let closing: { close(): Promise<void> }[] = [];
    const folders: string[] = [];
    let simulatorUrl = "";
    let first: Recorded;
    const opened = (path: string): TapeFolder => {
      const tape = loadTape(path);
      closing.push({ close: async () => tape.bodies.close() });
      return tape;
    };
    const taskOf = async () => {
      const [task] = await gsm8k.load({ seed: 1, limit: 1 });
      return task!;
    };

    const recorded = async (upstream: string, preload: boolean): Promise<Recorded> => {
      const run = `fw-${process.pid}-${runs++}`;
      const env = { PATH: process.env.PATH, HOME: process.env.HOME };
      const task = systemTask("gsm8k", await taskOf());
      const found = requireInstalled(system, process.env);
      const program = await systemProgram(system, found, { task, model: "simulator", env });
      const preloaded = { seed: run, at: "2025-06-01T12:00:00.123Z" };
      const settings = {
        command: program.command,
        env: { ...program.env, ...(preload ? preloadEnvironment(preloaded, program.env) : {}) },
        cwd: process.cwd(),
        timeLimitMs: 1000 * system.timeLimit,
        token: TOKEN,
        version: "0.0.0",
        now: () => new Date(preloaded.at),
      };
      const out = freshFolder("tape");
      folders.push(dirname(out));
      const { packages } = program;
      const about = { system: system.id, task, model: "simulator", packages, ...(preload && { preload: preloaded }) };
      const report = await recordProgram({ ...settings, out, run, upstream: new URL(upstream), program: about });
      const tape = opened(out);
      return {
        report,
        tape,
        again: (changes = {}) =>
          replayProgram({ ...settings, tape, masks: system.masks, idPatterns: system.idPatterns, ...changes }),
      };
    };

    beforeAll(async () => {
      requireInstalled(system, process.env);
      const model = simulatedModel({
        config: simulatorConfigSchema.parse({ provider: "simulator", hardRate: 0, noise: 0 }),
        solve: knowledgeOf(await gsm8k.load({ seed: 1, limit: 3 })),
      });
      const simulator = await serveSimulator({ model, port: 0, now: () => new Date(0) });
      closing.push(simulator);
      simulatorUrl = simulator.url;
      first = await recorded(simulatorUrl, system.preload === "needed");
    });
    afterAll(async () => {
      for (const each of closing) await each.close();
      closing = [];
      for (const folder of folders) rmSync(folder, { recursive: true, force: true });
    });

    it("solves the problem; its agents are the tape's lanes; the tape says what it ran on", async () => {
      const { report, tape } = first;
      expect(tape.bodies.get(tape.end!.stdout).toString()).toContain("answer");
      expect(report).toMatchObject({ exitCode: 0, retried: 0, failed: 0 });
      expect(await gsm8k.check(await taskOf(), report.answer)).toMatchObject({ success: true });
      expect(report.lanes).toEqual(lanes);
      expect([...system.agents].sort()).toEqual(Object.keys(lanes).sort());
      if (order !== undefined) expect(inOrder(tape).map(({ lane }) => lane)).toEqual(order);
      expect(validateTape(tape.path).faults).toEqual([]);
      expect(tape.header.program).toMatchObject({ system: system.id, task: { set: "gsm8k", id: "gsm8k-test-0001" } });
      expect(Object.keys(tape.header.program?.packages ?? {}).length).toBeGreaterThan(1);
    });

    it("passes the identity gate: no live call, the same outcome", async () => {
      // With the preload every request is the recorded one to the byte: nothing is left to mask.
      const replay = await first.again(system.preload === "needed" ? { masks: false } : {});
      expect(identityFaults(replay)).toEqual([]);
      expect(replay).toMatchObject({ liveCalls: 0, unplayed: 0, answer: first.report.answer });
      if (system.preload === "needed" || withoutPreload === "exact") {
        expect(replay.levels).toEqual({ L0: first.report.calls, L1: 0, L2: 0 });
      } else expect(replay.levels.L1).toBeGreaterThan(0);
    });

    if (system.preload === "needed") {
      const expected = typeof withoutPreload === "string" ? withoutPreload : `cannot, ${withoutPreload.cannot}`;
      it(`without the preload: ${expected}`, async () => {
        const run = await recorded(simulatorUrl, false);
        const replay = await run.again();
        expect(replay.liveCalls).toBe(0);
        if (typeof withoutPreload !== "string") expect(identityFaults(replay)).not.toEqual([]);
        else {
          expect(identityFaults(replay)).toEqual([]);
          expect(replay.levels.L1 > 0).toBe(withoutPreload === "masked");
        }
      });
    } else {
      it("with the preload every request is the recorded one, to the byte", async () => {
        const run = await recorded(simulatorUrl, true);
        const replay = await run.again({ masks: false });
        expect(identityFaults(replay)).toEqual([]);
        expect(replay.levels).toEqual({ L0: run.report.calls, L1: 0, L2: 0 });
      });
    }

    it("goes on live after a corrected answer, and what follows has seen it", async () => {
      const { tape, again, report } = first;
      const calls = inOrder(tape);
      const { at, action } = correctionOf(calls, tape, expectation.correction);
      const out = freshFolder("rerun");
      folders.push(dirname(out));
      const replay = await again({ cut: { at, action }, upstream: new URL(simulatorUrl), out });
      expect(replay).toMatchObject({ actions: 1, unplayed: 0, stopped: undefined, exitCode: 0 });
      expect(replay.levels.L0 + replay.levels.L1).toBe(at + 1);
      expect(replay.liveCalls).toBeGreaterThan(0);
      expect(replay.answer).not.toBe(report.answer);
      const rerun = opened(out);
      const later = inOrder(rerun).filter(({ from }) => from === "live");
      expect(later).toHaveLength(replay.liveCalls);
      expect(inOrder(rerun).filter(({ from }) => from === "tape")).toHaveLength(at);
      expect(later.some(({ request }) => rerun.bodies.get(request.body).toString().includes(CORRECTED))).toBe(true);
      for (const { request } of calls) expect(tape.bodies.get(request.body).toString()).not.toContain(CORRECTED);
    });

    if (retries.length > 0) {
      it(`asks again after ${retries.join(" and ")}, and the attempts are one call on the tape`, async () => {
        // The first attempt at a call fails; its retry is answered.
        const upstream = await failing(simulatorUrl, new Map(retries.map((status, index) => [1 + 3 * index, status])));
        closing.push(upstream);
        const run = await recorded(upstream.url, system.preload === "needed");
        expect(upstream.failed).toBe(retries.length);
        expect(run.report).toMatchObject({ exitCode: 0, retried: retries.length, failed: 0 });
        expect(run.report.lanes).toEqual(lanes);
        const replay = await run.again();
        expect(identityFaults(replay)).toEqual([]);
        expect(replay.liveCalls).toBe(0);
      });
    }
  });
}

/** The calls of a tape as the program meant them, in the order it asked. */
function inOrder(tape: TapeFolder): readonly StoredCall[] {
  return foldRetries(tape.calls).calls;
}
