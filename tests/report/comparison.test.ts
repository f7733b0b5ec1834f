import { describe, expect, it } from "vitest";
import { compareRuns } from "../../src/evaluation/compare-runs.ts";
import { COMPARED, type ComparedRun, type Comparison } from "../../src/evaluation/comparison.ts";
import { loadWhoAndWhen } from "../../src/evaluation/datasets.ts";
import { loadReferences } from "../../src/evaluation/references.ts";
import { scorePredictions } from "../../src/evaluation/score.ts";
import { comparisonCsv, comparisonMarkdown } from "../../src/report/comparison-files.ts";
import { comparisonHtml } from "../../src/report/comparison-html.ts";
import { comparisonText } from "../../src/report/comparison-table.ts";
import { prediction } from "../evaluation/predictions.ts";
import { parseCsv } from "./parse-csv.ts";

/** A name that is hostile to every form of output. */
const HOSTILE = `a|b,"c"\n<script>alert('x')</script>_*[d](e)&amp;`;

const { items } = await loadWhoAndWhen();
const references = await loadReferences("who-and-when");
const prices = { prompt: 1, completion: 4 };
function run(name: string, step: number, over: Partial<ComparedRun> = {}): ComparedRun {
  const predictions = items.map(({ id }) => prediction(id, "WebSurfer", step, { calls: step === 0 ? 0 : 1 }));
  const scores = scorePredictions(items, predictions, { epochs: 1, prices });
  return {
    name,
    method: "all-at-once",
    model: "m",
    withReference: false,
    items,
    predictions,
    scores,
    marks: [],
    ...over,
  };
}
const comparison: Comparison = compareRuns(
  [
    run(HOSTILE, 1, { method: HOSTILE, model: HOSTILE, marks: [HOSTILE] }),
    run("second", 4, { withReference: true }),
    run("free", 0),
  ],
  { seed: 1, resamples: 200, references, benchmark: items },
);
const [ag] = comparison.groups;

describe("CSV", () => {
  const rows = parseCsv(comparisonCsv(comparison));

  it("has a line for each row of each group, and its numbers parse back to the same", () => {
    const all = comparison.groups.flatMap((group) => group.rows.map((row) => ({ group, row })));
    expect(rows).toHaveLength(all.length);
    const number = (text: string | undefined) => (text === "" ? null : Number(text));
    for (const [i, { group, row }] of all.entries()) {
      const line = rows[i]!;
      expect([line.group, line.kind, line.name, line.source]).toEqual([
        group.name,
        row.kind,
        row.name,
        row.source ?? "",
      ]);
      for (const { id } of COMPARED) {
        const cell = row.cells[id];
        expect(number(line[id])).toBe(cell?.value ?? null);
        expect(number(line[`${id}_low`])).toBe(cell?.low ?? null);
        expect(number(line[`${id}_n`])).toBe(cell?.n ?? null);
        expect(line[`${id}_below_floor`]).toBe(cell?.belowFloor ?? "");
      }
      expect(number(line.money)).toBe(row.cost?.money ?? null);
      expect(number(line.vs_baseline_step_p)).toBe(row.paired?.step.mcNemar?.pValue ?? null);
      expect(number(line.vs_baseline_agent_pairs)).toBe(row.paired?.agent.pairs ?? null);
    }
  });

  it("keeps hostile names whole", () => {
    expect(rows[0]).toMatchObject({ name: HOSTILE, method: HOSTILE, model: HOSTILE });
  });
});

describe("JSON", () => {
  it("parses back to the comparison", () => {
    expect(JSON.parse(JSON.stringify(comparison))).toEqual(comparison);
  });
});

describe("Markdown", () => {
  const text = comparisonMarkdown(comparison);

  it("has tables whose lines all have as many cells as their header", () => {
    const lines = text.split("\n").filter((line) => line.startsWith("| "));
    const cells = (line: string) => line.replace(/\\./gu, "").split("|").length;
    expect(new Set(lines.map(cells)).size).toBe(1);
    expect(lines).toHaveLength(comparison.groups.reduce((total, group) => total + group.rows.length + 2, 0));
  });

  it("shows value, interval and n, marks published and floor rows, and has no HTML", () => {
    expect(text).toContain("26.98 n=126 \\[20.0, 35.3\\]");
    expect(text).toContain("published");
    expect(text).toContain("## Hand-Crafted");
    expect(text).not.toMatch(/[^\\]<script/u);
  });
});

describe("HTML", () => {
  const html = comparisonHtml(comparison, HOSTILE);

  it("is one file: no script, nothing loaded, nothing of a name let through", () => {
    expect(html.startsWith("<!doctype html>")).toBe(true);
    expect(html).not.toMatch(/<script|<link|<img|<iframe|@import|url\(|src=|href=/iu);
    expect(html).not.toMatch(/https?:\/\//u);
    expect(html).toContain("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;");
  });

  it("closes every element it opens", () => {
    const open: string[] = [];
    for (const [, slash, name, rest] of html.matchAll(/<(\/?)([a-z][a-z0-9]*)([^>]*)>/gu)) {
      if (["meta", "br"].includes(name!) || rest!.endsWith("/")) continue;
      if (slash === "") open.push(name!);
      else expect(open.pop()).toBe(name);
    }
    expect(open).toEqual([]);
  });

  it("has plots of step, agent and cost for each group, and every row in a table", () => {
    expect(html.match(/<svg /gu)).toHaveLength(3 * comparison.groups.length);
    const rows = comparison.groups.reduce((total, group) => total + group.rows.length, 0);
    expect(html.match(/<tr class="(measured|floor|published)">/gu)).toHaveLength(rows);
    expect(html).toContain('<span class="kind">published</span>');
    expect(html).not.toContain("NaN");
    expect(html).not.toContain("Infinity");
  });
});

describe("the terminal's tables", () => {
  const text = comparisonText(comparison);
  const line = (start: string) => text.split("\n").find((one) => one.includes(start))!;

  it("have value with n, interval below, floors, published results with their source, and the pairing", () => {
    // 11 of 126 labels name step 4: counted in the files.
    expect(line("│ second")).toContain("8.73 ↓ n=126");
    expect(text).toContain("[20.0, 35.3]");
    expect(line("floor: constant-step")).toContain("26.98 n=126");
    expect(line("published: all-at-once, GPT-4o, w/ G [")).toContain("12.50 ↓ n=126");
    expect(text).toMatch(/\[1\] \S/u);
    expect(text).toMatch(/p=[<.\d]+ \(\d+:\d+\)/u);
    expect(text).toMatch(/\d+ more published rows/u);
  });

  it("show what people agree on where that is known, with its n and its source, beside the published results only", () => {
    const [generated, crafted] = text.split("Hand-Crafted: percent");
    expect(generated).not.toContain("human agreement");
    // 16 and 27 of 44 logs.
    const human = crafted!.split("\n").find((one) => one.includes("published: human agreement ["))!;
    expect(human).toContain("36.36 n=44");
    expect(human).toContain("61.36 n=44");
    expect(crafted).toMatch(/\[\d+\] AgentRx \(arXiv 2602\.02475\), root causes of 44 Hand-Crafted logs/u);
    expect(comparisonMarkdown(comparison)).toContain("two teams of people, no method");
    const without = compareRuns([run("a", 1)], { seed: 1, resamples: 20, benchmark: items });
    expect(comparisonText(without)).not.toContain("human agreement");
  });

  it("name the run that the others are compared with", () => {
    expect(ag!.baseline).toBe(HOSTILE);
    expect(text).toContain("difference to");
    expect(text).toContain("baseline");
  });
});
