import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { renderSynth } from "../../src/cli/synth.ts";
import { silentProgress } from "../../src/runs/progress.ts";
import { openRunFolder } from "../../src/runs/run-folder.ts";
import { synthConfigSchema } from "../../synth/pipeline/config.ts";
import { synthesize } from "../../synth/synthesize.ts";

const folder = mkdtempSync(join(tmpdir(), "rootstep-report-"));
afterAll(() => rmSync(folder, { recursive: true }));

async function run(name: string, search: Record<string, unknown>, others: Record<string, unknown> = {}) {
  const config = synthConfigSchema.parse({
    seed: 6,
    tasks: { set: "chain", limit: 15 },
    model: { regime: "systematic", noise: 0 },
    inject: { operator: "none" },
    ...others,
    search,
  });
  const path = join(folder, name);
  const opened = openRunFolder({ path, kind: "synth", version: "test", settings: config, now: () => new Date(0) });
  try {
    const openModel = () => {
      throw new Error("no model server in this test");
    };
    const report = await synthesize({ config, folder: opened, progress: silentProgress, openModel });
    const evidence = readFileSync(join(path, "dataset", "evidence.jsonl"), "utf8")
      .trim()
      .split("\n");
    return { report, evidence: evidence.map((line) => JSON.parse(line) as Record<string, unknown>) };
  } finally {
    opened.release();
  }
}

describe("the report of synth run", () => {
  it("says what the analyzer's proposals came to; they add up", async () => {
    const { report } = await run("plain", {});
    const analyzer = report.strategies[0]?.analyzer;
    if (analyzer === undefined) throw new Error("no analyzer in the report");
    const { asked, usable, nonsense, refused, leaked, rewritten, steps, corrected, confirmed } = analyzer;
    expect(asked).toBe(usable + nonsense + refused + leaked + rewritten);
    expect([nonsense, refused, rewritten]).toEqual([0, 0, 0]);
    expect(corrected).toBeLessThanOrEqual(steps);
    expect(confirmed).toBeGreaterThanOrEqual(report.strategies[0]?.labelled.hits ?? Number.NaN);
    expect(analyzer.meanEditShare).toBeGreaterThan(0);
    expect(renderSynth(report)).toContain(`Analyzer under bayes: ${asked} corrections asked for, ${usable} usable`);
    expect(renderSynth(report)).not.toContain("e-BH");
  }, 120_000);

  it("keeps labels by e-BH: the reruns go on for long enough, and the evidence says at which level each is kept", async () => {
    const strict = await run("strict", { fdr: 0.05 });
    const { labelled, fdr } = strict.report.strategies[0] ?? {};
    expect(labelled?.hits).toBeGreaterThan(5);
    expect(fdr?.level).toBe(0.05);
    expect(fdr?.kept.n).toBe(labelled?.hits);
    expect(fdr?.kept.hits).toBeGreaterThan((labelled?.hits ?? 0) / 2);
    expect(strict.report.dataset.train + strict.report.dataset.test).toBe(fdr?.kept.hits);
    const levels = strict.evidence.map(({ fdrLevel }) => Number(fdrLevel));
    expect(levels.filter((level) => level <= 0.05)).toHaveLength(fdr?.kept.hits ?? -1);
    expect(renderSynth(strict.report)).toContain(`e-BH at 0.05 under bayes: keeps ${fdr?.kept.hits} of`);
  }, 120_000);

  it.each([
    ["chain", "planner-solver-verifier", "hint"],
    ["hotpotqa", "searcher", "hint"],
    // A session of blackjack has no answer that could be given away.
    ["blackjack", "blackjack-table", "no hint"],
  ])(
    "has placebo and hint arms of a run on %s (seed 6): the placebo does what the recorded action does",
    async (set, system, hinted) => {
      const reruns = 10;
      const { report, evidence } = await run(set, { controlReruns: reruns }, { tasks: { set, limit: 15 }, system });
      const [strategy] = report.strategies;
      const { controls, labelled } = strategy ?? {};
      if (controls === undefined || labelled === undefined) throw new Error("no controls in the report");
      expect(labelled.hits).toBeGreaterThan(3);
      expect(controls.placebo.n).toBe(reruns * labelled.hits);
      expect(controls.hint.n).toBe(hinted === "hint" ? reruns * labelled.hits : 0);
      // Without noise a team that goes on from its mistake fails, and from the correction succeeds.
      expect([controls.control.hits, controls.placebo.hits]).toEqual([0, 0]);
      expect(controls.treated.hits / controls.treated.n).toBeGreaterThan(0.9);
      expect(evidence.filter((line) => line.controls !== undefined)).toHaveLength(labelled.hits);
      expect(renderSynth(report)).toContain(`rephrased (placebo) 0.0`);
    },
    120_000,
  );

  it("counts the labels of injection by the operator that each point names (seed 6)", async () => {
    const { report, evidence } = await run(
      "any",
      {},
      { model: { hardRate: 0, noise: 0 }, inject: { operator: "any" } },
    );
    const points = evidence.flatMap(({ points = [] }) => points as { operator?: string; decision: string }[]);
    const { operators, labelled } = report.injection;
    expect(Object.keys(operators).length).toBeGreaterThan(2);
    expect(Object.values(operators).reduce((sum, { hits }) => sum + hits, 0)).toBe(labelled);
    for (const [name, { hits, n }] of Object.entries(operators)) {
      const own = points.filter(({ operator }) => operator === name);
      expect([name, own.length, own.filter(({ decision }) => decision === "decisive").length]).toEqual([name, n, hits]);
      expect(renderSynth(report)).toContain(`${name} ${hits} of ${n}`);
    }
    for (const { operator, decision } of points) expect(operator === undefined).toBe(decision === "nothing to change");
  }, 120_000);
});
