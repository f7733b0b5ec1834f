import { describe, expect, it } from "vitest";
import { loadWhoAndWhen } from "../../src/evaluation/datasets.ts";
import { floorsFor } from "../../src/evaluation/floors.ts";
import {
  belowFloor,
  claimOf,
  HUMAN_AGREEMENT,
  loadReferences,
  type Reference,
} from "../../src/evaluation/references.ts";
import { formatById } from "../../src/formats/registry.ts";
import { sameAgent } from "../../src/trajectory/agent-name.ts";

const references = await loadReferences("who-and-when");
const { items } = await loadWhoAndWhen();
const floors = (subset: string) => floorsFor(items.filter((item) => item.subset === subset));
const floorsOf: Record<string, ReturnType<typeof floors>> = {
  "Algorithm-Generated": floors("Algorithm-Generated"),
  "Hand-Crafted": floors("Hand-Crafted"),
};
const find = (wanted: Partial<Reference>): Reference[] =>
  references.filter((r) => Object.entries(wanted).every(([key, value]) => r[key as keyof Reference] === value));
const name = (r: Reference) => `${r.method} ${r.model} ${r.percent}`;

/** The `data` folder of github.com/microsoft/AgentRx, where one lies on this machine. */
const release = process.env.ROOTSTEP_AGENTRX_DATA;

it.skipIf(release === undefined)(
  "people's agreement is what the second team's release says of the same histories",
  async () => {
    const counted = { n: 0, step: 0, agent: 0 };
    for await (const { trajectory } of formatById("agentrx").read(release ?? "")) {
      const [, id] = trajectory.id.split("/");
      const item = items.find(
        ({ subset, trajectory: { task } }) => subset === HUMAN_AGREEMENT.subset && task.id === id,
      );
      if (item === undefined) continue;
      const said = (of: typeof trajectory) => of.steps.map(({ content }) => content);
      expect(said(trajectory), trajectory.id).toEqual(said(item.trajectory));
      const [label] = trajectory.labels;
      counted.n += 1;
      counted.step += Number(label?.step === item.label.step);
      counted.agent += Number(sameAgent(label?.agent ?? "", item.label.agent));
    }
    expect(counted).toEqual({ n: HUMAN_AGREEMENT.n, step: HUMAN_AGREEMENT.step, agent: HUMAN_AGREEMENT.agent });
  },
);

describe("published results", () => {
  it.each<[Partial<Reference>, number]>([
    [{ method: "AgenTracer", subset: "Algorithm-Generated", column: "step", setting: "with-reference" }, 42.86],
    [{ method: "AgenTracer", subset: "Algorithm-Generated", column: "step", setting: "without-reference" }, 37.3],
    [{ method: "AgenTracer", subset: "Hand-Crafted", column: "agent", setting: "with-reference" }, 69.1],
    [{ method: "AIG", model: "Opus-5", subset: "Algorithm-Generated", column: "step", tolerance: 0 }, 55.2],
    [
      { method: "all-at-once", model: "GPT-4o", subset: "Hand-Crafted", column: "step", setting: "without-reference" },
      3.51,
    ],
    [
      {
        method: "all-at-once",
        model: "Claude-4-Sonnet",
        subset: "Algorithm-Generated",
        column: "step",
        setting: "without-reference",
      },
      38.83,
    ],
    [{ method: "RAFFLES", model: "Sonnet-4", subset: "Algorithm-Generated", column: "step" }, 51.6],
    [{ method: "FAMAS", subset: "Hand-Crafted", column: "step" }, 41.38],
  ])("%o", (wanted, percent) => {
    expect(find(wanted).map((r) => r.percent)).toEqual([percent]);
  });

  it("stand once for each method, model, column and setting", () => {
    const keys = references.map((r) => JSON.stringify([r.method, r.model, r.subset, r.column, r.tolerance, r.setting]));
    expect(new Set(keys).size).toBe(keys.length);
  });

  it("carry the size of their set", () => {
    for (const r of references) expect(r.n).toBe(r.subset === "Algorithm-Generated" ? 126 : 58);
  });

  it("hold the test sets of TracerTraj: 147, 63 and 56 runs", async () => {
    const others = await loadReferences("tracertraj");
    expect(others).toHaveLength(9 * 12);
    expect(new Set(others.map((r) => `${r.subset} ${r.n}`))).toEqual(
      new Set(["TracerTraj code 147", "TracerTraj math 63", "TracerTraj agentic 56"]),
    );
    const cell = others.filter(
      (r) => r.method === "AgenTracer" && r.subset === "TracerTraj math" && r.column === "step",
    );
    expect(cell.map((r) => r.percent)).toEqual([57.63, 57.63]);
  });
});

describe("a number below its floor", () => {
  it("is marked: ±3 of the best method on Algorithm-Generated lies below a constant", () => {
    const [best] = find({ method: "AIG", tolerance: 3 });
    expect(best!.percent).toBe(84);
    expect(belowFloor(claimOf(best!), floorsOf["Algorithm-Generated"]!)).toMatchObject({
      id: "constant-step",
      detail: "always 3",
    });
  });

  it("is marked: Hand-Crafted agents below always WebSurfer, and only these", () => {
    const agents = find({ subset: "Hand-Crafted", column: "agent" });
    const marked = agents.filter((r) => belowFloor(claimOf(r), floorsOf["Hand-Crafted"]!) !== undefined);
    expect(marked.map(name).sort()).toEqual(
      agents
        .filter((r) => r.percent < 56.9)
        .map(name)
        .sort(),
    );
    expect(marked.length).toBeGreaterThan(10);
    for (const r of marked) expect(belowFloor(claimOf(r), floorsOf["Hand-Crafted"]!)!.id).toBe("constant-agent");
  });

  it("is not marked where it equals the floor as printed or lies above", () => {
    const hc = floorsOf["Hand-Crafted"]!;
    expect(belowFloor({ column: "agent", tolerance: 0, value: 0.569 }, hc)).toBeUndefined();
    expect(belowFloor({ column: "agent", tolerance: 0, value: 0.568 }, hc)).toBeDefined();
    const [aig] = find({ method: "AIG", model: "Opus-5", subset: "Algorithm-Generated", column: "step", tolerance: 0 });
    expect(belowFloor(claimOf(aig!), floorsOf["Algorithm-Generated"]!)).toBeUndefined();
  });
});
