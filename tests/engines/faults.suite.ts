import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import type { Completion } from "../../trainer/engines/engine.ts";
import { type Metric, metricSchema } from "../../trainer/metrics.ts";
import { vllmRollouts } from "../../trainer/vllm/rollouts.ts";
import { openVllmServer } from "../../trainer/vllm/server.ts";
import { engineIsReady, restartEngine, signalEngine } from "./processes.ts";
import { describeWithEngines, engineServers } from "./servers.ts";
import { PROMPTS_PER_STEP, smallRun } from "./small-run.ts";
import { openTcpProxy, type TcpProxy } from "./tcp-proxy.ts";

/** A long enough wait for a healthy server on a busy machine, once it has compiled what it needs. */
const PATIENCE_MS = 25_000;

/** How a request for rollouts begins. */
const COMPLETIONS = "POST /v1/completions";

// Last of the suites: it stops and kills the servers that the others share.
describeWithEngines("a GRPO run whose real servers fail", () => {
  let root: string;
  const proxies: TcpProxy[] = [];
  let undisturbed: readonly Metric[];
  const folderOf = (name: string): string => mkdtempSync(join(root, `${name}-`));
  const metricsOf = (folder: string): readonly Metric[] =>
    readFileSync(join(folder, "metrics.jsonl"), "utf8")
      .trim()
      .split("\n")
      .map((line) => metricSchema.parse(JSON.parse(line)));
  const proxied = async (url: URL): Promise<TcpProxy> => {
    const proxy = await openTcpProxy(url);
    proxies.push(proxy);
    return proxy;
  };

  beforeAll(async () => {
    root = mkdtempSync(join(tmpdir(), "rootstep-faults-"));
    const folder = folderOf("undisturbed");
    await smallRun({ folder });
    undisturbed = metricsOf(folder);
  }, 600_000);
  afterEach(async () => {
    await Promise.all(proxies.splice(0).map((proxy) => proxy.die()));
  });
  afterAll(() => root && rmSync(root, { recursive: true, force: true }));

  /** Every step once, with its number of groups, and the figures of a run that nothing disturbed. */
  function expectUndisturbed(folder: string, state: { readonly step: number; readonly position: number }): void {
    expect(state).toMatchObject({ step: 3, position: 3 * PROMPTS_PER_STEP });
    const metrics = metricsOf(folder);
    expect(metrics.map(({ step }) => step)).toEqual([0, 1, 2]);
    expect(metrics.map(({ groups }) => groups)).toEqual([PROMPTS_PER_STEP, PROMPTS_PER_STEP, PROMPTS_PER_STEP]);
    for (const [s, metric] of metrics.entries()) {
      expectClose(metric, undisturbed[s]);
    }
  }

  it("ends as an undisturbed one where vLLM is slow and breaks off in the middle of answers", async () => {
    const proxy = await proxied(engineServers().vllm);
    proxy.slowDown(100);
    let retries = 0;
    const folder = folderOf("cut");
    const onSample = () => proxy.cutNext(1);
    const state = await smallRun({ folder, vllm: [proxy.url], onSample, onRetry: () => retries++ });
    expect(retries).toBe(3);
    expectUndisturbed(folder, state);
  }, 600_000);

  it("samples every group once where one of two servers dies under way", async () => {
    const { vllm } = engineServers();
    const [mortal, other] = [await proxied(vllm), await proxied(vllm)];
    const retried: string[] = [];
    const ask = (urls: readonly URL[]): Promise<readonly (readonly Completion[])[]> =>
      vllmRollouts({
        servers: urls.map((url) => openVllmServer({ url })),
        model: "tiny",
        maxCompletion: 60,
        concurrency: 4,
        attempts: 4,
        restMs: 20,
        onRetry: (_, server) => retried.push(server),
      }).sample({
        prompts: Array.from({ length: 8 }, (_, p) => [65 + p, 105]),
        n: 2,
        temperature: 1,
        seed: "one dies",
      });
    const expected = await ask([vllm]);
    // Answers come a second late, so that groups are under way when their server dies.
    mortal.slowDown(1_000);
    const asked = mortal.nextRequest(COMPLETIONS);
    const pending = ask([mortal.url, other.url]);
    await asked;
    await mortal.die();
    const tokens = (groups: readonly (readonly Completion[])[]) =>
      groups.map((group) => group.map((one) => one.tokens));
    expect(tokens(await pending)).toEqual(tokens(expected));
    expect(retried.length).toBeGreaterThan(0);
    expect(new Set(retried)).toEqual(new Set([mortal.url.origin]));
  }, 600_000);

  it("stops at its time limit where vLLM hangs, and goes on when it answers again", async () => {
    const folder = folderOf("vllm-hung");
    const hung = smallRun({
      folder,
      vllmMs: PATIENCE_MS,
      onSample: (s) => s === 1 && signalEngine("vllm", "SIGSTOP"),
      onEnd: () => signalEngine("vllm", "SIGCONT"),
    });
    await expect(hung).rejects.toMatchObject({
      code: "MODEL_TIMEOUT",
      where: expect.stringContaining(engineServers().vllm.host),
    });
    expect(metricsOf(folder).map(({ step }) => step)).toEqual([0]);
    expectUndisturbed(folder, await smallRun({ folder }));
  }, 600_000);

  it("stops where the engine hangs between gradient and update, and goes on from its checkpoint", async () => {
    const folder = folderOf("skyrl-hung");
    const hung = smallRun({
      folder,
      engineMs: PATIENCE_MS,
      onOptimStep: (s) => s === 1 && signalEngine("skyrl", "SIGSTOP"),
      onEnd: () => signalEngine("skyrl", "SIGCONT"),
    });
    await expect(hung).rejects.toMatchObject({
      code: "ENGINE_FAILED",
      what: expect.stringMatching(/^optim_step failed: .*time limit/u),
      where: expect.stringContaining(engineServers().skyrl.host),
    });
    expect(metricsOf(folder).map(({ step }) => step)).toEqual([0]);
    expectUndisturbed(folder, await smallRun({ folder }));
  }, 600_000);

  it("stops where the engine, then vLLM, is killed, and goes on with servers started anew", async () => {
    const folder = folderOf("killed");
    const onOptimStep = (s: number) => s === 1 && signalEngine("skyrl", "SIGKILL");
    try {
      await expect(smallRun({ folder, onOptimStep })).rejects.toMatchObject({
        where: expect.stringContaining(engineServers().skyrl.host),
      });
      expect(readdirSync(join(folder, "checkpoints"))).toContain("step-000001");
      restartEngine("skyrl");
      await engineIsReady("skyrl");
      const proxy = await proxied(engineServers().vllm);
      const onSample = (s: number) => {
        if (s !== 2) return;
        // Answers come a second late, so that the rollouts are still under way.
        proxy.slowDown(1_000);
        void proxy.nextRequest(COMPLETIONS).then(() => setTimeout(() => signalEngine("vllm", "SIGKILL"), 200));
      };
      await expect(smallRun({ folder, vllm: [proxy.url], onSample })).rejects.toMatchObject({
        code: expect.stringMatching(/^MODEL_/u),
        where: expect.stringContaining(proxy.url.host),
      });
      expect(readdirSync(join(folder, "checkpoints"))).toContain("step-000002");
    } finally {
      restartEngine("vllm");
    }
    await engineIsReady("vllm");
    expectUndisturbed(folder, await smallRun({ folder }));
  }, 1_200_000);
});

/** The same numbers up to what two batches of the same floats may differ by. */
function expectClose(found: unknown, expected: unknown, path = "metric"): void {
  if (typeof expected === "number") {
    expect(Math.abs(Number(found) - expected), path).toBeLessThanOrEqual(1e-3 * Math.max(1, Math.abs(expected)));
  } else if (typeof expected === "object" && expected !== null) {
    const [a, b] = [Object.entries(found ?? {}), Object.entries(expected)];
    expect(
      a.map(([key]) => key),
      path,
    ).toEqual(b.map(([key]) => key));
    for (const [i, [key, value]] of b.entries()) expectClose(a[i]?.[1], value, `${path}.${key}`);
  } else expect(found, path).toBe(expected);
}
