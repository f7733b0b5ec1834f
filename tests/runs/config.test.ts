import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { shippedPath } from "../../src/package-root.ts";
import { environmentName, flagName, loadConfig, settingsOf } from "../../src/runs/config.ts";
import { synthConfigSchema } from "../../synth/pipeline/config.ts";
import { trainConfigSchema } from "../../trainer/config.ts";
import { temporaryFolder } from "../temporary-folder.ts";

const schema = z.strictObject({
  seed: z.number().int().default(1).describe("the seed"),
  name: z.string().default("x"),
  search: z.strictObject({ maxBlocks: z.number().default(10), kinds: z.array(z.string()).default([]) }).prefault({}),
  model: z
    .discriminatedUnion("provider", [
      z.strictObject({ provider: z.literal("a"), rate: z.number().default(1) }),
      z.strictObject({ provider: z.literal("b"), url: z.string() }),
    ])
    .optional(),
});

function yaml(text: string): string {
  const file = join(temporaryFolder("config"), "config.yaml");
  writeFileSync(file, text);
  return file;
}
const load = (more: { file?: string; env?: Record<string, string>; flags?: Record<string, unknown> } = {}) =>
  loadConfig(schema, { verb: "synth", env: {}, flags: {}, ...more });

describe("configuration", () => {
  it("takes YAML, then the environment, then flags, then defaults", () => {
    const file = yaml("seed: 2\nname: from-yaml\nsearch: { maxBlocks: 5, kinds: [p] }\n");
    expect(load()).toMatchObject({ seed: 1, name: "x" });
    expect(load({ file })).toMatchObject({ seed: 2, name: "from-yaml", search: { maxBlocks: 5, kinds: ["p"] } });
    const env = { ROOTSTEP_SYNTH_SEED: "3", ROOTSTEP_SYNTH_SEARCH_MAX_BLOCKS: "6", ROOTSTEP_SYNTH_NAME: "7" };
    expect(load({ file, env })).toMatchObject({ seed: 3, name: "7", search: { maxBlocks: 6, kinds: ["p"] } });
    expect(load({ file, env, flags: { seed: 4 } })).toMatchObject({ seed: 4, search: { maxBlocks: 6 } });
    expect(load({ env: { ROOTSTEP_SYNTH_MODEL_PROVIDER: "b", ROOTSTEP_SYNTH_MODEL_URL: "u" } }).model).toEqual({
      provider: "b",
      url: "u",
    });
  });

  it.each([
    ["an unknown key", "seed: 1\nserch:\n  maxBlocks: 2\n", 'unknown key "serch"', /config\.yaml:2 serch$/u],
    [
      "an unknown nested key",
      "search:\n  maxBlocks: 2\n  blocks: 1\n",
      'unknown key "search.blocks"',
      /config\.yaml:3 search\.blocks$/u,
    ],
    ["a wrong type", "name: x\nseed: many\n", "seed: Invalid input: expected number", /config\.yaml:2 seed$/u],
  ])("names file and line of %s", (_, text, what, where) => {
    expect(() => load({ file: yaml(text) })).toThrow(
      expect.objectContaining({
        code: "CONFIG_INVALID",
        what: expect.stringContaining(what),
        where: expect.stringMatching(where),
      }),
    );
  });

  it("names the variable or the flag that is wrong", () => {
    expect(() => load({ env: { ROOTSTEP_SYNTH_SEED: "soon" } })).toThrow(/environment variable ROOTSTEP_SYNTH_SEED/u);
    expect(() => load({ flags: { search: { maxBlocks: "x" } } })).toThrow(/flag --search\.max-blocks/u);
  });

  it("names the line of broken YAML, and a file that is not there", () => {
    expect(() => load({ file: yaml("seed: 1\nname: [\n") })).toThrow(
      expect.objectContaining({ code: "CONFIG_UNREADABLE" }),
    );
    expect(() => load({ file: yaml("- a\n- b\n") })).toThrow(/must hold a mapping/u);
    expect(() => load({ file: "/no/such/file.yaml" })).toThrow(
      expect.objectContaining({ code: "FILE_MISSING", where: "/no/such/file.yaml" }),
    );
  });

  it("lists the settings with types, defaults and descriptions from the one schema", () => {
    expect(settingsOf(schema).map(({ path, type }) => `${path}:${type}`)).toEqual([
      "seed:number",
      "name:string",
      "search.maxBlocks:number",
      "search.kinds:array",
      "model.provider:string",
      "model.rate:number",
      "model.url:string",
    ]);
    expect(settingsOf(schema)[0]).toMatchObject({ default: 1, description: "the seed" });
    expect([
      environmentName("train", "B0"),
      flagName("B0"),
      flagName("search.maxBlocks"),
      flagName("evalEvery"),
    ]).toEqual(["ROOTSTEP_TRAIN_B0", "B0", "search.max-blocks", "eval-every"]);
  });

  it("ships configurations that its own schemas take", () => {
    const demo = readdirSync(shippedPath("configs", "demo"));
    expect(demo.length).toBeGreaterThan(0);
    for (const name of demo) {
      loadConfig(synthConfigSchema, { verb: "synth", file: shippedPath("configs", "demo", name), env: {}, flags: {} });
    }
    loadConfig(trainConfigSchema, {
      verb: "train",
      file: shippedPath("configs", "train-embedded.yaml"),
      env: {},
      flags: {},
    });
  });
});
