import { describe, expect, it } from "vitest";
import {
  type EvalFile,
  evalConfigSchema,
  evalFileSchema,
  isMatrix,
  matrixRuns,
  singleRun,
} from "../../src/evaluation/config.ts";
import { methodById } from "../../src/methods/registry.ts";
import { shippedPath } from "../../src/package-root.ts";
import { loadConfig } from "../../src/runs/config.ts";

const server = { provider: "openai-compatible", baseUrl: "http://127.0.0.1:1/v1" } as const;
const file = (settings: unknown): EvalFile => evalFileSchema.parse(settings);
const names = (settings: unknown): string[] => matrixRuns(file(settings)).map(({ name }) => name);

describe("one configuration for one run or many", () => {
  it("leaves the single form as it is", () => {
    const settings = { method: "floor-last-step", data: { subset: "hand-crafted" }, seed: 3, withReference: true };
    expect(isMatrix(file(settings))).toBe(false);
    expect(singleRun(file(settings))).toEqual(evalConfigSchema.parse(settings));
    expect(() => singleRun(file({}))).toThrow(/no method is named/u);
  });

  it("multiplies methods, models, subsets and settings of the reference answer", () => {
    const settings = {
      methods: [{ method: "all-at-once" }, { method: "floor-constant-step", options: { step: 4 } }],
      models: [
        { ...server, model: "org/big-8B" },
        { ...server, model: "small" },
      ],
      subsets: ["algorithm-generated", "hand-crafted"],
      withReference: [true, false],
      limit: 5,
    };
    expect(isMatrix(file(settings))).toBe(true);
    expect(names(settings)).toEqual([
      "all-at-once_big-8B_algorithm-generated_with-reference",
      "all-at-once_big-8B_algorithm-generated",
      "all-at-once_big-8B_hand-crafted_with-reference",
      "all-at-once_big-8B_hand-crafted",
      "all-at-once_small_algorithm-generated_with-reference",
      "all-at-once_small_algorithm-generated",
      "all-at-once_small_hand-crafted_with-reference",
      "all-at-once_small_hand-crafted",
      // No model, no prompt: once per subset.
      "floor-constant-step_algorithm-generated",
      "floor-constant-step_hand-crafted",
    ]);
    const runs = matrixRuns(file(settings));
    expect(runs[1]!.config).toMatchObject({
      method: "all-at-once",
      model: { model: "org/big-8B" },
      data: { subset: "algorithm-generated" },
      withReference: false,
      limit: 5,
    });
    expect(runs[8]!.config).toMatchObject({ options: { step: 4 }, withReference: false });
    expect(runs[8]!.config.model).toBeUndefined();
    // Each is what the single form takes.
    for (const { config } of runs) expect(evalConfigSchema.parse(config)).toEqual(config);
  });

  it("tells models of one name apart, and asks for names where a method stands twice", () => {
    const models = [
      { ...server, model: "a/m" },
      { ...server, model: "b/m" },
    ];
    expect(names({ method: "all-at-once", models })).toEqual(["all-at-once_m-1_all", "all-at-once_m-2_all"]);
    const twice = [{ method: "floor-constant-step", options: { step: 1 } }, { method: "floor-constant-step" }];
    expect(() => names({ methods: twice })).toThrow(/two runs of the matrix would be called/u);
    expect(names({ methods: [{ ...twice[0], name: "always-1" }, twice[1]!] })).toEqual([
      "always-1_all",
      "floor-constant-step_all",
    ]);
  });

  it.each([
    [{ methods: [{ method: "all-at-once" }], method: "floor-last-step" }, "method and methods"],
    [
      { method: "all-at-once", models: [{ ...server, model: "m" }], model: { ...server, model: "m" } },
      "model and models",
    ],
    [{ subsets: ["all"] }, "neither method nor methods"],
    [{ methods: [{ method: "oracle" }] }, "oracle"],
  ])("refuses %j", (settings, text) => {
    expect(() => names(settings)).toThrow(text);
  });

  it("ships an example that its schema takes and whose methods can be configured", () => {
    const config = loadConfig(evalFileSchema, {
      verb: "eval",
      file: shippedPath("configs", "eval-who-and-when.yaml"),
      env: {},
      flags: {},
    });
    const runs = matrixRuns(config);
    expect(runs).toHaveLength(52); // 6 methods × 2 models × 2 subsets × with and without G, and 2 floors × 2 subsets
    for (const { config: one } of runs) methodById(one.method).configure(one.options);
  });
});
