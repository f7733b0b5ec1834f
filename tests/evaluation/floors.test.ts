import { describe, expect, it } from "vitest";
import { type EvaluationItem, loadWhoAndWhen } from "../../src/evaluation/datasets.ts";
import { type Floor, TOLERANCES, type Tolerance } from "../../src/evaluation/floor.ts";
import { floorsFor, highestFloor } from "../../src/evaluation/floors.ts";
import { run } from "./items.ts";

const ag = floorsFor((await loadWhoAndWhen({ subset: "algorithm-generated" })).items);
const hc = floorsFor((await loadWhoAndWhen({ subset: "hand-crafted" })).items);

function percent(floors: readonly Floor[], id: Floor["id"], tolerance: Tolerance = 0): string {
  const floor = floors.find((candidate) => candidate.id === id && candidate.tolerance === tolerance)!;
  return (100 * floor.value).toFixed(2);
}
const detail = (floors: readonly Floor[], id: Floor["id"], tolerance: Tolerance = 0): string =>
  floors.find((floor) => floor.id === id && floor.tolerance === tolerance)!.detail;

// The values were computed from the files by a separate Python program.
describe("floors of Who&When", () => {
  it.each<[Floor["id"], Tolerance, string, string]>([
    ["constant-step", 0, "26.98", "15.52"],
    ["constant-step", 1, "51.59", "24.14"],
    ["constant-step", 2, "70.63", "37.93"],
    ["constant-step", 3, "86.51", "46.55"],
    ["random-step", 0, "12.00", "4.16"],
    ["random-agent", 0, "29.10", "29.20"],
    ["constant-agent", 0, "14.29", "56.90"],
    ["most-talkative-agent", 0, "38.49", "31.03"],
    ["most-talkative-agent-without", 0, "52.38", "31.03"],
    ["most-talkative-by-characters", 0, "63.49", "51.72"],
    ["true-agent-first-turn", 0, "53.17", "25.86"],
    ["last-step", 0, "0.79", "12.07"],
  ])("%s ±%i: %s on Algorithm-Generated, %s on Hand-Crafted", (id, tolerance, expectedAg, expectedHc) => {
    expect(percent(ag, id, tolerance)).toBe(expectedAg);
    expect(percent(hc, id, tolerance)).toBe(expectedHc);
  });

  it("names the constants", () => {
    expect(TOLERANCES.map((tolerance) => detail(ag, "constant-step", tolerance))).toEqual([
      "always 1",
      "always 1",
      "always 2",
      "always 3",
    ]);
    expect(TOLERANCES.map((tolerance) => detail(hc, "constant-step", tolerance))).toEqual([
      "always 4",
      "always 4",
      "always 6",
      "always 6",
    ]);
    expect(detail(ag, "constant-agent")).toBe("always Verification_Expert");
    expect(detail(hc, "constant-agent")).toBe("always WebSurfer");
  });

  it("counts 126 and 58 logs", () => {
    expect(new Set(ag.map((floor) => floor.n))).toEqual(new Set([126]));
    expect(new Set(hc.map((floor) => floor.n))).toEqual(new Set([58]));
  });

  it("sets the bar without oracles", () => {
    expect(highestFloor(ag, "step")?.id).toBe("constant-step");
    expect(highestFloor(ag, "agent")?.id).toBe("most-talkative-agent-without");
    expect(highestFloor(hc, "agent")?.id).toBe("constant-agent");
  });
});

describe("floors of any set", () => {
  // Two layouts. In the first the third step is to blame twice of three times, in the second the first one.
  const train: EvaluationItem[] = [
    run("a", ["P", "S", "V"], 2),
    run("b", ["P", "S", "V"], 2),
    run("c", ["P", "S", "V"], 1),
    run("d", ["S", "P"], 0),
  ];

  it("learns the label of each layout from training runs", () => {
    const items = [run("e", ["P", "S", "V"], 2), run("f", ["P", "S", "V"], 1), run("g", ["S", "P"], 0)];
    const floors = floorsFor(items, { train });
    expect(percent(floors, "layout-mode-step")).toBe("66.67");
    expect(percent(floors, "layout-mode-step", 1)).toBe("100.00");
    expect(percent(floors, "layout-mode-agent")).toBe("66.67");
    expect(detail(floors, "layout-mode-step")).toBe("learnt from 4 runs; layout known for 3 of 3");
  });

  it("falls back to all training runs for a new layout, and says how many there are", () => {
    const floors = floorsFor([run("e", ["V", "V", "V"], 2)], { train });
    expect(percent(floors, "layout-mode-step")).toBe("100.00");
    expect(detail(floors, "layout-mode-step")).toBe("learnt from 4 runs; layout known for 0 of 1");
  });

  it("has none for an empty set", () => {
    expect(floorsFor([])).toEqual([]);
  });
});
