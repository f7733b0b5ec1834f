import { rmSync } from "node:fs";
import { dirname } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { identityFaults } from "../../../synth/proxy/identity.ts";
import { recordProgram } from "../../../synth/proxy/record-program.ts";
import { replayProgram } from "../../../synth/proxy/replay-program.ts";
import { knowledgeOf } from "../../../synth/simulator/knowledge.ts";
import { serveSimulator } from "../../../synth/simulator/server.ts";
import { simulatedModel, simulatorConfigSchema } from "../../../synth/simulator/simulator.ts";
import { agentprune } from "../../../synth/systems/agentprune/system.ts";
import { installed, requireInstalled } from "../../../synth/systems/installation.ts";
import { systemProgram, systemTask } from "../../../synth/systems/system-program.ts";
import { loadTape } from "../../../synth/tape/loader.ts";
import { gsm8k } from "../../../synth/tasks/gsm8k.ts";
import { freshFolder, TOKEN } from "../proxy-setting.ts";

/*
 * The user's own checkout, with ROOTSTEP_AGENTPRUNE and ROOTSTEP_AGENTPRUNE_PYTHON set. Not the frameworks' common suite:
 * its ids come from os.urandom, so that no preload makes two runs equal. The shape of its traffic is tested everywhere:
 * agentprune-traffic.test.ts.
 */
const here = installed(agentprune, process.env);
const name = here.state === "installed" ? agentprune.id : `${agentprune.id} (not here: ${here.do})`;

describe.skipIf(here.state === "missing")(name, () => {
  const folders: string[] = [];
  const folder = (): string => {
    const made = freshFolder("tape");
    folders.push(dirname(made));
    return made;
  };
  afterAll(() => {
    for (const made of folders) rmSync(made, { recursive: true, force: true });
  });

  it.each(["1", "2"])(
    "is recorded, passes the identity gate and reruns with a corrected answer, in %s rounds",
    async (rounds) => {
      const [task] = await gsm8k.load({ seed: 1, limit: 1 });
      const config = simulatorConfigSchema.parse({ provider: "simulator", hardRate: 0, noise: 0 });
      const model = simulatedModel({ config, solve: knowledgeOf([task!]) });
      const simulator = await serveSimulator({ model, port: 0, now: () => new Date(0) });
      try {
        const env = { PATH: process.env.PATH, HOME: process.env.HOME, ROOTSTEP_AGENTPRUNE_ROUNDS: rounds };
        const started = { task: systemTask("gsm8k", task!), model: "simulator", env };
        const program = await systemProgram(agentprune, requireInstalled(agentprune, process.env), started);
        const settings = {
          command: program.command,
          env: program.env,
          cwd: process.cwd(),
          timeLimitMs: 1000 * agentprune.timeLimit,
          token: TOKEN,
          version: "0.0.0",
          now: () => new Date(0),
        };
        const upstream = new URL(simulator.url);
        const out = folder();
        const report = await recordProgram({ ...settings, out, run: `agentprune-${process.pid}`, upstream });
        const lanes = Object.fromEntries(
          agentprune.agents.map((agent) => [agent, agent === "decision" ? 1 : Number(rounds)]),
        );
        expect(report).toMatchObject({ exitCode: 0, retried: 0, failed: 0, lanes });
        expect(await gsm8k.check(task!, report.answer)).toMatchObject({ success: true });

        const tape = loadTape(out);
        const { idPatterns } = agentprune;
        const replay = await replayProgram({ ...settings, tape, idPatterns });
        expect(identityFaults(replay)).toEqual([]);
        expect(replay).toMatchObject({ liveCalls: 0, unplayed: 0 });
        expect(replay.levels.L1).toBeGreaterThan(3 * Number(rounds));

        const action = { kind: "text", text: "1 + 1 = 77771\nThe answer is 77771" } as const;
        const rerun = await replayProgram({
          ...settings,
          tape,
          idPatterns,
          cut: { at: 1, action },
          upstream,
          out: folder(),
        });
        expect(rerun).toMatchObject({ actions: 1, stopped: undefined, answer: "77771", liveCalls: report.calls - 2 });
      } finally {
        await simulator.close();
      }
    },
  );
});
