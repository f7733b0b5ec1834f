import { execFileSync } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import { shippedPath } from "../src/package-root.ts";

const planted: string[] = [];
afterEach(() => {
  for (const file of planted.splice(0)) rmSync(file, { force: true });
});

/** What biome says of a file with that import, put where it must not stand. */
function lint(file: string, specifier: string): string {
  const path = shippedPath(file);
  planted.push(path);
  writeFileSync(path, `import * as planted from "${specifier}";\nexport const used = planted;\n`);
  try {
    return execFileSync(shippedPath("node_modules", ".bin", "biome"), ["lint", path], {
      cwd: shippedPath(),
      encoding: "utf8",
      stdio: "pipe",
    });
  } catch (error) {
    return error instanceof Error && "stderr" in error
      ? String(error.stderr) + String("stdout" in error ? error.stdout : "")
      : "";
  }
}

describe("the dependency rule", () => {
  it.each([
    ["src/formats/planted-violation.ts", "../methods/registry.ts"],
    ["src/models/planted-violation.ts", "../../synth/synthesize.ts"],
    ["src/evaluation/planted-violation.ts", "../cli/main.ts"],
    ["src/methods/planted-violation.ts", "../evaluation/run.ts"],
    ["synth/planted-violation.ts", "../trainer/loop.ts"],
    ["trainer/planted-violation.ts", "../synth/synthesize.ts"],
    ["trainer/planted-violation.ts", "../src/cli/main.ts"],
  ])("is broken by %s importing %s, and the linter says so", (file, specifier) => {
    expect(lint(file, specifier)).toContain("noRestrictedImports");
  });

  it("is kept by an import downwards", () => {
    expect(lint("src/methods/planted-violation.ts", "../models/chat-model.ts")).not.toContain("noRestrictedImports");
  });
});
