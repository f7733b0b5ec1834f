import { mkdtempSync, rmSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Clock } from "../../src/models/clock.ts";
import type { Loss, OptimizerSettings, TrainingGroup } from "../../trainer/engines/engine.ts";
import type { TinkerEngine, TinkerEngineOptions } from "../../trainer/engines/tinker/engine.ts";
import { tinkerProfile } from "../../trainer/engines/tinker/profiles.ts";
import { failedRuns } from "./embedded/support.ts";
import { openServed, servedCodec, serveEmbedded } from "./tinker-client.ts";
import type { Fault, ServedCall, TinkerServer } from "./tinker-server.ts";
import { jsonWire, protobufWire } from "./tinker-wire.ts";

const CLIPPED: Loss = { kind: "clipped-surrogate", clipLow: 0.2, clipHigh: 0.2 };
const ADAM: OptimizerSettings = {
  learningRate: 1e-3,
  beta1: 0.9,
  beta2: 0.99,
  epsilon: 1e-8,
  weightDecay: 0,
  maxGradNorm: 1,
};
const [prompt = []] = failedRuns("tinker faults", 1).map(({ trajectory }) => servedCodec.encodePrompt(trajectory));

/** A clock whose sleeps take no time. */
function fastClock(): Clock {
  let now = 0;
  return {
    now: () => now,
    async sleep(ms, signal) {
      signal?.throwIfAborted();
      now += ms;
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

/** A fault at the first calls of a verb from now on. */
function at(place: ServedCall["at"], verb: string, fault: Fault, times = 1) {
  let left = times;
  return (call: ServedCall): Fault | undefined =>
    call.at === place && call.verb === verb && left-- > 0 ? fault : undefined;
}
const ALWAYS = Number.POSITIVE_INFINITY;
const reset = (when: "before" | "after"): Fault => ({ kind: "reset", when });

for (const id of ["skyrl-train", "skyrl-jax", "verl-tinker"]) {
  const profile = tinkerProfile(id);
  const wire = profile.encoding.accept.includes("protobuf") ? protobufWire : jsonWire;

  describe(`the client of ${id}, when the engine's server misbehaves`, () => {
    let server: TinkerServer;
    let fault: ((call: ServedCall) => Fault | undefined) | undefined;
    let group: TrainingGroup;
    let engine: TinkerEngine | undefined;
    const folder = mkdtempSync(join(tmpdir(), "rootstep-tinker-"));
    const journal = join(folder, "journal.jsonl");

    const open = async (more: Partial<TinkerEngineOptions> = {}): Promise<TinkerEngine> => {
      engine = await openServed(server.url, profile, { clock: fastClock(), ...more });
      return engine;
    };
    const train = async (subject: TinkerEngine) => {
      await subject.forwardBackward([group], CLIPPED);
      return subject.optimStep(ADAM);
    };
    const logprobs = async (subject: TinkerEngine) => (await subject.forward([group]))[0]?.[0] ?? [];
    const ranTimes = (verb: string, from: number) => server.ran.slice(from).filter((name) => name === verb).length;
    const askedTimes = (verb: string, from: number) => server.asked.slice(from).filter((name) => name === verb).length;
    /** What an undisturbed step leaves: its gradient norm and the log-probabilities after it. */
    let undisturbed: { readonly gradNorm: number; readonly after: readonly number[] };

    beforeAll(async () => {
      server = await serveEmbedded(profile, { fault: (call) => fault?.(call), holdMs: 200 });
      const subject = await open();
      const [[completion] = []] = await subject.sample({ prompts: [prompt], n: 1, temperature: 1, seed: "faults" });
      const { tokens = [], logprobs: oldLogprobs = [] } = completion ?? {};
      group = { prompt, completions: [{ tokens, weights: tokens.map(() => 1), advantage: 1, oldLogprobs }] };
      undisturbed = { ...(await train(subject)), after: await logprobs(subject) };
      await subject.close();
    });
    afterEach(async () => {
      fault = undefined;
      await engine?.close();
      engine = undefined;
    });
    afterAll(async () => {
      await server.close();
      rmSync(folder, { recursive: true });
    });

    for (const verb of ["forward_backward", "optim_step"] as const) {
      for (const [place, when] of [
        ["submit", "before"],
        ["submit", "after"],
        ["result", "before"],
        ["result", "after"],
      ] as const) {
        const lost = `${place === "submit" ? "request" : "result"} of ${verb}, ${when} the server did its part`;
        if (profile.deduplicates) {
          it(`goes on after the connection broke at the ${lost}: it runs once`, async () => {
            const subject = await open();
            const [ran, asked] = [server.ran.length, server.asked.length];
            fault = at(place, verb, reset(when));
            const { gradNorm } = await train(subject);
            expect(ranTimes(verb, ran)).toBe(1);
            expect(askedTimes(verb, asked)).toBe(place === "submit" ? 2 : 1);
            expect({ gradNorm, after: await logprobs(subject) }).toEqual(undisturbed);
          });
        } else {
          it(`never asks again after the connection broke at the ${lost}, and says so`, async () => {
            const subject = await open();
            const [ran, asked] = [server.ran.length, server.asked.length];
            fault = at(place, verb, reset(when));
            await expect(train(subject)).rejects.toMatchObject({
              code: "ENGINE_FAILED",
              what: expect.stringContaining(`the answer to ${verb} was lost`),
              hint: expect.stringContaining("last checkpoint"),
            });
            expect(askedTimes(verb, asked)).toBe(1);
            if (place === "submit" && when === "before") expect(ranTimes(verb, ran)).toBe(0);
          });
        }
      }

      it(`asks ${verb} again where the server says it is too busy to begin`, async () => {
        const subject = await open();
        const ran = server.ran.length;
        fault = at("submit", verb, { kind: "answer", status: 503, body: { detail: "busy" } }, 2);
        const { gradNorm } = await train(subject);
        expect(ranTimes(verb, ran)).toBe(1);
        expect({ gradNorm, after: await logprobs(subject) }).toEqual(undisturbed);
      });
    }

    for (const verb of ["forward", "asample", "save_weights"] as const) {
      it(`asks again for ${verb}, which changes nothing, wherever the connection broke`, async () => {
        const subject = await open();
        const sample = () => subject.sample({ prompts: [prompt], n: 2, temperature: 1, seed: "again" });
        const before = { rows: await logprobs(subject), samples: await sample() };
        for (const place of ["submit", "result"] as const) {
          for (const when of ["before", "after"] as const) {
            // Where a forward pass is a flag of forward_backward, the path is that.
            const path = verb === "forward" && wire === protobufWire ? "forward_backward" : verb;
            let met = 0;
            const once = at(place, path, reset(when));
            fault = (call) => {
              const found = once(call);
              if (found !== undefined) met++;
              return found;
            };
            if (verb === "save_weights") {
              await subject.importState(await subject.exportState());
              expect(await logprobs(subject)).toEqual(before.rows);
            } else if (verb === "forward") expect(await logprobs(subject)).toEqual(before.rows);
            else expect(await sample()).toEqual(before.samples);
            expect(met).toBe(1);
          }
        }
      });
    }

    it("asks anew for samples whose request the server has forgotten, and never for an update", async () => {
      const forgotten: Fault = { kind: "answer", status: 404, body: { detail: "Future not found: request-1" } };
      const subject = await open();
      const sample = () => subject.sample({ prompts: [prompt], n: 2, temperature: 1, seed: "forgotten" });
      const before = await sample();
      const asked = server.asked.length;
      fault = at("result", "asample", forgotten);
      expect(await sample()).toEqual(before);
      expect(askedTimes("asample", asked)).toBe(2);
      fault = at("result", "asample", forgotten, ALWAYS);
      await expect(sample()).rejects.toMatchObject({
        code: "ENGINE_FAILED",
        what: expect.stringContaining("lost 4 times"),
      });
      fault = at("result", "optim_step", forgotten);
      const updates = server.asked.length;
      await expect(train(subject)).rejects.toMatchObject({
        code: "ENGINE_FAILED",
        what: expect.stringMatching(profile.resultsStay ? /Future not found/u : /the answer to optim_step was lost/u),
        hint: expect.stringContaining("last checkpoint"),
      });
      expect(askedTimes("optim_step", updates)).toBe(1);
    });

    it("waits for a slow result, and gives it up at its time limit", async () => {
      const subject = await open({ resultMs: 100_000 });
      const waiting: Fault =
        wire === jsonWire
          ? { kind: "answer", status: 200, body: { type: "try_again", queue_state: "active" } }
          : { kind: "answer", status: 408, body: { detail: "not yet" } };
      fault = at("result", "optim_step", waiting, 5);
      expect(await train(subject)).toEqual({ gradNorm: undisturbed.gradNorm });
      fault = at("result", "optim_step", waiting, ALWAYS);
      await expect(train(subject)).rejects.toMatchObject({
        code: "ENGINE_FAILED",
        what: "optim_step failed: no result after 100 s",
      });
    });

    it("ends a request that is never answered at its time limit", async () => {
      const timeouts = { firstByteMs: 1_500, totalMs: 2_000 };
      const subject = await open({ address: { url: server.url, timeouts } });
      fault = at("submit", "optim_step", { kind: "hang" }, ALWAYS);
      const asked = server.asked.length;
      await expect(train(subject)).rejects.toMatchObject({ code: "ENGINE_FAILED" });
      expect(askedTimes("optim_step", asked)).toBe(profile.deduplicates ? 4 : 1);
    });

    type Rows = readonly (readonly number[])[];
    const changed = (rows: Rows): Fault => ({ kind: "change", change: () => wire.writeForwardBackward(rows) });
    const length = () => prompt.length + (group.completions[0]?.tokens.length ?? 0) - 1;
    const refusals: readonly (readonly [string, string, () => Fault, object])[] = [
      [
        "a short row",
        "forward_backward",
        () => changed([new Array<number>(length() - 1).fill(-1)]),
        failed(/log-prob/u),
      ],
      ["no row", "forward_backward", () => changed([]), failed(/0 sequences for 1/u)],
      [
        "a row too many",
        "forward_backward",
        () => changed([0, 1].map(() => new Array<number>(length()).fill(-1))),
        failed(/2 sequences for 1/u),
      ],
      [
        "NaN log-probabilities",
        "forward_backward",
        () => changed([new Array<number>(length()).fill(Number.NaN)]),
        { code: "ENGINE_NAN", what: expect.stringContaining("NaN") },
      ],
      ["bytes of another kind", "forward_backward", () => garbled("<html>oops</html>"), failed(/cannot be decoded/u)],
      ["an empty result", "forward_backward", () => garbled(""), failed(/empty body/u)],
      [
        "an error in place of a result",
        "forward_backward",
        () => garbled('{"error":"CUDA out of memory","category":"server"}'),
        failed(/CUDA out of memory/u),
      ],
      [
        "a NaN gradient norm",
        "optim_step",
        () => garbled(JSON.stringify({ metrics: { [profile.gradientNorm[0] ?? ""]: null } })),
        { code: "ENGINE_NAN", what: expect.stringContaining("gradient norm") },
      ],
      ["no gradient norm", "optim_step", () => garbled('{"metrics":{"lr":1}}'), failed(/reports no gradient norm/u)],
      ["another shape", "optim_step", () => garbled('{"metrics":[1]}'), failed(/another shape/u)],
      ["no JSON", "optim_step", () => garbled("OK"), failed(/not JSON/u)],
    ];
    function failed(what: RegExp) {
      return { code: "ENGINE_FAILED", what: expect.stringMatching(what) };
    }
    function garbled(text: string): Fault {
      return { kind: "change", change: () => Buffer.from(text) };
    }
    for (const [what, verb, result, error] of refusals) {
      if (what === "an empty result" && profile.resultsStay === false) continue; // there it counts as a lost one, above
      it(`refuses ${what} as the result of ${verb}`, async () => {
        const subject = await open();
        fault = at("result", verb, result(), ALWAYS);
        await expect(train(subject)).rejects.toMatchObject(error);
      });
    }

    for (const [status, detail, hint] of [
      [409, "seq_id was used by another request", /one process trains/u],
      [415, "Unsupported Media Type", /engine\.profile/u],
      [404, "Model not found", /Run again/u],
      [422, "unknown loss", /last checkpoint/u],
    ] as const) {
      it(`explains HTTP ${status} to a training request, which it does not repeat`, async () => {
        const subject = await open();
        const asked = server.asked.length;
        fault = at("submit", "forward_backward", { kind: "answer", status, body: { detail } }, ALWAYS);
        await expect(train(subject)).rejects.toMatchObject({
          code: "ENGINE_FAILED",
          what: expect.stringContaining(detail),
          hint: expect.stringMatching(hint),
        });
        expect(askedTimes("forward_backward", asked)).toBe(1);
      });
    }

    it("meets the real refusals of the server: another encoding, a number used twice", async () => {
      const other = tinkerProfile(wire === jsonWire ? "skyrl-train" : "verl-tinker").encoding;
      const wrong = await openServed(server.url, { ...profile, encoding: other }, { clock: fastClock() });
      await expect(wrong.forward([group])).rejects.toMatchObject({
        code: "ENGINE_FAILED",
        hint: expect.stringContaining("engine.profile"),
      });
      await wrong.close();
      if (!profile.deduplicates) return;
      const ahead = await open();
      const model = server.models.at(-1);
      await train(ahead); // uses the numbers 1 and 2
      const behind = await fetch(new URL("/api/v1/optim_step", server.url), {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ model_id: model, seq_id: 2 }),
      });
      expect(behind.status).toBe(409);
    });

    it("says that a restarted server holds the model no more, and goes on from a saved state", async () => {
      const first = await open();
      await train(first);
      const saved = await first.exportState();
      const after = await logprobs(first);
      server.restart();
      const gone = train(first);
      await expect(gone).rejects.toMatchObject({ code: "ENGINE_FAILED", hint: expect.stringContaining("Run again") });
      const next = await open();
      await next.importState(saved);
      expect(await logprobs(next)).toEqual(after);
    });

    it("unloads what an earlier process left, by its journal, once", async () => {
      const before = server.models.length;
      await openServed(server.url, profile, { clock: fastClock(), journal }); // killed: never closed
      await openServed(server.url, profile, { clock: fastClock(), journal });
      expect(server.models).toHaveLength(before + 1);
      server.restart();
      const asked = server.asked.length;
      const third = await open({ journal });
      expect(askedTimes("unload_model", asked)).toBe(1);
      await third.close();
      const fourth = await open({ journal });
      // Neither the one the restart took nor the one that was closed is asked for again.
      expect(askedTimes("unload_model", asked)).toBe(2);
      expect(server.models).toHaveLength(1);
      expect(await readFile(journal, "utf8")).toContain('"event":"unloaded"');
      await fourth.close();
    });

    it("closes without an error, and keeps the model in the journal, where the server is gone or the run interrupted", async () => {
      const controller = new AbortController();
      const interrupted = await open({ signal: controller.signal, journal });
      controller.abort();
      await interrupted.close();
      expect(server.models).toHaveLength(0);
      const cut = await open({ journal });
      fault = at("submit", "unload_model", reset("before"), ALWAYS);
      await cut.close();
      expect(server.models).toHaveLength(1);
      fault = undefined;
      await (await open({ journal })).close();
      expect(server.models).toHaveLength(0);
    });
  });
}
