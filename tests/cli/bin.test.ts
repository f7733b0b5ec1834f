import { accessSync, constants, readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { shippedPath } from "../../src/package-root.ts";

it("is built executable, with a line that names its interpreter: `npx rootstep` runs the file itself", () => {
  const manifest: { bin: { rootstep: string } } = JSON.parse(readFileSync(shippedPath("package.json"), "utf8"));
  const bin = shippedPath(manifest.bin.rootstep);
  accessSync(bin, constants.X_OK);
  expect(readFileSync(bin, "utf8").split("\n")[0]).toBe("#!/usr/bin/env node");
});
