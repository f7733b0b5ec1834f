import { describe, expect, it } from "vitest";
import { commandsFor, verbs } from "../../src/cli/commands.ts";

describe("verbs are loaded when they are asked for", () => {
  it.each(verbs.map(({ word }) => word))(
    "a line that begins with `%s` gets that verb's commands and no other",
    async (word) => {
      const names = (await commandsFor([word, "--json"])).map(({ name }) => name);
      expect(names.length).toBeGreaterThan(0);
      for (const name of names) expect(name.split(" ")[0]).toBe(word);
    },
  );

  it.each([[[]], [["--help"]], [["sinth", "run"]], [["--json", "list"]]])(
    "%j gets all of them, each once, in the order of the verbs",
    async (argv) => {
      const names = (await commandsFor(argv)).map(({ name }) => name);
      expect(new Set(names).size).toBe(names.length);
      expect([...new Set(names.map((name) => name.split(" ")[0]))]).toEqual(verbs.map(({ word }) => word));
    },
  );
});
