/**
 * Writes configs/schemas/*.json from the zod schemas, for editors and for programs in other languages:
 * `npx tsx scripts/generate-schemas.ts`. A test checks that they are current.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { evalFileSchema } from "../src/evaluation/config.ts";
import { shippedPath } from "../src/package-root.ts";
import { labelSchema, trajectorySchema } from "../src/trajectory/schema.ts";
import { synthConfigSchema } from "../synth/pipeline/config.ts";
import { trainConfigSchema } from "../trainer/config.ts";

const SCHEMAS = {
  trajectory: trajectorySchema,
  label: labelSchema,
  "synth-config": synthConfigSchema,
  "train-config": trainConfigSchema,
  "eval-config": evalFileSchema,
} satisfies Record<string, z.ZodType>;

/** File name → content of every generated schema. */
export function generatedSchemas(): ReadonlyMap<string, string> {
  return new Map(
    Object.entries(SCHEMAS).map(([name, schema]) => {
      const json = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" });
      return [`${name}.json`, `${JSON.stringify(json, null, 2)}\n`];
    }),
  );
}

if (process.argv[1]?.endsWith("generate-schemas.ts") === true) {
  const folder = shippedPath("configs", "schemas");
  mkdirSync(folder, { recursive: true });
  for (const [file, content] of generatedSchemas()) writeFileSync(join(folder, file), content);
}
