import { existsSync, readFileSync } from "node:fs";
import { appendFile, mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import { z } from "zod";

const entrySchema = z.union([
  z.strictObject({ event: z.literal("session"), sessionId: z.string() }),
  z.strictObject({ event: z.literal("model"), modelId: z.string() }),
  z.strictObject({ event: z.literal("unloaded"), modelId: z.string() }),
  z.strictObject({ event: z.enum(["submitted", "settled"]), verb: z.string(), requestId: z.string() }),
]);
export type JournalEntry = z.infer<typeof entrySchema>;

/** What was asked of an engine that outlives us: who reads it after a crash knows what the server may still hold. */
export interface EngineJournal {
  note(entry: JournalEntry): Promise<void>;
  /** Models of earlier processes that were never unloaded. */
  readonly leftModels: readonly string[];
}

/** Appends to a file; undefined keeps no journal. A line cut by a crash is passed over: the next one is what counts. */
export function openEngineJournal(path: string | undefined): EngineJournal {
  if (path === undefined) return { note: async () => {}, leftModels: [] };
  const left = new Set<string>();
  for (const entry of existsSync(path) ? readEntries(path) : []) {
    if (entry.event === "model") left.add(entry.modelId);
    if (entry.event === "unloaded") left.delete(entry.modelId);
  }
  return {
    leftModels: [...left],
    async note(entry) {
      await mkdir(dirname(path), { recursive: true });
      await appendFile(path, `${JSON.stringify(entry)}\n`);
    },
  };
}

function readEntries(path: string): JournalEntry[] {
  return readFileSync(path, "utf8")
    .split("\n")
    .flatMap((line) => {
      try {
        return [entrySchema.parse(JSON.parse(line))];
      } catch {
        return [];
      }
    });
}
