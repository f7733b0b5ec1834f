import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { generatedSchemas } from "../scripts/generate-schemas.ts";
import { shippedPath } from "../src/package-root.ts";

describe("configs/schemas", () => {
  it.each([...generatedSchemas()])(
    "%s is what its zod schema says (else: npx tsx scripts/generate-schemas.ts)",
    (file, content) => {
      expect(readFileSync(shippedPath("configs", "schemas", file), "utf8")).toBe(content);
    },
  );
});
