import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { shippedPath } from "../../../src/package-root.ts";
import { identityFaults } from "../../../synth/proxy/identity.ts";
import { knowledgeOf } from "../../../synth/simulator/knowledge.ts";
import { serveSimulator } from "../../../synth/simulator/server.ts";
import { simulatedModel, simulatorConfigSchema } from "../../../synth/simulator/simulator.ts";
import { foldRetries } from "../../../synth/tape/fold.ts";
import { loadTape } from "../../../synth/tape/loader.ts";
import { gsm8k } from "../../../synth/tasks/gsm8k.ts";
import { type Handler, startServer } from "../../models/loopback.ts";
import { completion } from "../proxy-setting.ts";
import { mostAtOnce, type RecordedTraffic, traffic } from "./traffic.ts";

const PROMPTS = shippedPath("synth", "systems", "support", "prompts");
const { record, folder, clean } = traffic();
const open: { close(): Promise<void> }[] = [];
afterAll(async () => {
  for (const server of open) await server.close();
  clean();
});

const stub = async (handler: Handler): Promise<string> => {
  const server = await startServer(handler);
  open.push(server);
  return `${server.url}/v1`;
};

/** Answers in the form that is asked for; votes that differ, so that their order shows. */
function team(): Handler {
  let votes = 0;
  return ({ body }, response) => {
    const prompt: string = JSON.parse(body).messages[0].content;
    if (prompt.includes("<solution_letter>")) response.end(completion("<solution_letter>B</solution_letter>"));
    else if (prompt.startsWith("You are the planner")) response.end(completion("Plan 1: 2 + 3 (last)"));
    else if (prompt.startsWith("You are the solver")) response.end(completion("2 + 3 = 5"));
    else response.end(completion(`Checked: the final answer is ${5 + votes++}.`));
  };
}

describe("traffic like AFlow's: six problems at once, the same prompt three times, an ensemble", () => {
  let tasks: Awaited<ReturnType<typeof gsm8k.load>>;
  let simulator: string;
  let batch: RecordedTraffic;
  beforeAll(async () => {
    tasks = await gsm8k.load({ seed: 1, limit: 6 });
    const config = simulatorConfigSchema.parse({ provider: "simulator", hardRate: 0, noise: 0 });
    const served = await serveSimulator({
      model: simulatedModel({ config, solve: knowledgeOf(tasks) }),
      port: 0,
      now: () => new Date(0),
    });
    open.push(served);
    simulator = served.url;
    batch = await record("aflow.mjs", [JSON.stringify(tasks.map(({ text }) => text)), PROMPTS], simulator);
  });

  it("is recorded in one lane, several calls under way, and solved", async () => {
    const { report, tape } = batch;
    expect(report).toMatchObject({ exitCode: 0, retried: 0, failed: 0, lanes: { agent: report.calls } });
    expect(mostAtOnce(tape)).toBeGreaterThan(1);
    const answers = report.answer?.split(" ") ?? [];
    const outcomes = await Promise.all(tasks.map((task, index) => gsm8k.check(task, answers[index])));
    expect(outcomes.map(({ success }) => success)).toEqual(tasks.map(() => true));
  });

  it("passes the identity gate, whatever the order in which the problems' calls arrive", async () => {
    const replay = await batch.again({ masks: false });
    expect(identityFaults(replay)).toEqual([]);
    expect(replay).toMatchObject({ liveCalls: 0, levels: { L0: batch.report.calls, L1: 0, L2: 0 } });
  });

  it("goes on live after a corrected answer, and later prompts hold it", async () => {
    const { bodies } = batch.tape;
    const { calls } = foldRetries(batch.tape.calls); // as a cut counts them; the file has them as they ended
    const at = calls.findIndex(({ response }) => / = \d/u.test(bodies.get(response.body).toString()));
    const out = folder();
    const replay = await batch.again({
      cut: { at, action: { kind: "text", text: "1 + 1 = 77771" } },
      upstream: new URL(simulator),
      out,
    });
    expect(replay).toMatchObject({ actions: 1, unplayed: 0, stopped: undefined, exitCode: 0 });
    expect(replay.liveCalls).toBeGreaterThan(0);
    const rerun = loadTape(out);
    const later = rerun.calls.filter(({ from }) => from === "live");
    expect(later.some(({ request }) => rerun.bodies.get(request.body).toString().includes("77771"))).toBe(true);
    expect(replay.answer).not.toBe(batch.report.answer);
  });

  it("gives equal prompts their answers in recorded order, also where one of them had the wrong form", async () => {
    const answer = team();
    let first = true;
    const url = await stub((request, response) => {
      if (!first) return answer(request, response);
      first = false;
      response.end(completion("")); // the operator asks again with the same words
    });
    const { again, report } = await record("aflow.mjs", [JSON.stringify(["2 + 3?"]), PROMPTS], url);
    expect(report).toMatchObject({ exitCode: 0, calls: 1 + 2 + 3 + 1, retried: 0, answer: "6" });
    expect(identityFaults(await again())).toEqual([]);
  });

  it("with a shuffled ensemble diverges there, and repeats itself with the preload", async () => {
    const args = [JSON.stringify(Array.from({ length: 6 }, (_, n) => `${n} + 3?`)), PROMPTS, "shuffle"];
    const loose = await record("aflow.mjs", args, await stub(team()));
    const diverged = await loose.again();
    expect(diverged.stopped?.code).toBe("REPLAY_DIVERGED");
    expect(diverged.liveCalls).toBe(0);
    const one = [JSON.stringify(["2 + 3?"]), PROMPTS, "shuffle"];
    const seeded = await record("aflow.mjs", one, await stub(team()), true);
    expect(identityFaults(await seeded.again({ masks: false }))).toEqual([]);
  });
});
