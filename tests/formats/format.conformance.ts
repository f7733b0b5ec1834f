import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ErrorCode, RootstepError } from "../../src/errors.ts";
import type { ReadOptions, TrajectoryFormat } from "../../src/formats/format.ts";
import { MAX_RECORD_BYTES } from "../../src/formats/json-bytes.ts";
import { detectFormat } from "../../src/formats/registry.ts";
import { validateFile } from "../../src/formats/validate.ts";
import { type Trajectory, trajectorySchema } from "../../src/trajectory/schema.ts";
import { checkSeeded } from "./seeded.ts";

/** What the suite has to know about a two-way format. */
export interface FormatCase {
  readonly format: TrajectoryFormat & Required<Pick<TrajectoryFormat, "write">>;
  /** Random trajectories, of those that the format can hold without loss, with ids of their own. */
  readonly trajectories: fc.Arbitrary<Trajectory[]>;
  /** A name to write to, below an empty folder. */
  readonly target: (folder: string) => string;
  /** Bytes of a file with `good` records, then one of the given bytes, then `good` more; and where the bad one lies. */
  readonly plant: (folder: string, good: number, bad: Buffer) => Promise<{ source: string; where: string }>;
}

const text = (content: string): Buffer => Buffer.from(content, "utf8");

const BAD_RECORDS: readonly { name: string; bytes: () => Buffer; code: ErrorCode; max?: number }[] = [
  { name: "text that is not JSON", bytes: () => text("{'single': quotes}"), code: "DATA_NOT_JSON" },
  { name: "two values", bytes: () => text("{}{}"), code: "DATA_NOT_JSON" },
  { name: "a NUL byte", bytes: () => text('{"id":"a\u0000"}'), code: "DATA_INVALID" },
  { name: "Latin-1", bytes: () => Buffer.from('{"id":"caf\xe9"}', "latin1"), code: "DATA_INVALID" },
  { name: "UTF-16", bytes: () => Buffer.from('{"id":"a"}', "utf16le"), code: "DATA_INVALID" },
  { name: "deep nesting", bytes: () => text("[".repeat(1e6) + "]".repeat(1e6)), code: "DATA_INVALID" },
  { name: "a record over the limit given", bytes: () => text(`"${"x".repeat(2e5)}"`), code: "DATA_INVALID", max: 1e5 },
  {
    name: "a record over the default limit",
    bytes: () => Buffer.alloc(MAX_RECORD_BYTES + 1, "1"),
    code: "DATA_INVALID",
  },
  { name: "an empty object", bytes: () => text("{}"), code: "DATA_INVALID" },
  { name: "an array", bytes: () => text("[]"), code: "DATA_INVALID" },
  { name: "null", bytes: () => text("null"), code: "DATA_INVALID" },
  { name: "a number", bytes: () => text("17"), code: "DATA_INVALID" },
];

/** What every two-way format promises. */
export function formatConformance({ format, trajectories, target, plant }: FormatCase): void {
  describe(`format ${format.id}`, () => {
    let folder = "";
    let fresh = 0;
    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), "rootstep-format-"));
    });
    afterAll(async () => {
      await rm(folder, { recursive: true, force: true });
    });
    const newTarget = async (): Promise<string> => {
      fresh++;
      return target(await mkdtemp(join(folder, `${fresh}-`)));
    };
    const newFolder = async (): Promise<string> => mkdtemp(join(folder, "planted-"));

    test("reads back what it wrote, and finds nothing lost", async () => {
      const property = fc.asyncProperty(trajectories, async (written) => {
        const source = await newTarget();
        const losses: unknown[] = [];
        await format.write(written, source, { onLoss: (loss) => losses.push(loss) });
        const { read } = await readAll(format, source, { onLoss: (loss) => losses.push(loss) });
        expect(byId(read)).toEqual(byId(written));
        expect(losses).toEqual([]);
      });
      await checkSeeded(`${format.id} round trip`, property, 60);
    });

    test("recognises its own files, and no other format claims them", async () => {
      const property = fc.asyncProperty(trajectories, async (written) => {
        const source = await newTarget();
        await format.write(written, source);
        expect(await format.detect(source)).toBe(1);
        expect((await detectFormat(source)).id).toBe(format.id);
      });
      await checkSeeded(`${format.id} detect`, property, 10);
    });

    test("what it reads satisfies the schema", async () => {
      const property = fc.asyncProperty(trajectories, async (written) => {
        const source = await newTarget();
        await format.write(written, source);
        for (const trajectory of (await readAll(format, source)).read) {
          expect(trajectorySchema.parse(trajectory)).toEqual(trajectory);
        }
      });
      await checkSeeded(`${format.id} schema`, property, 10);
    });

    test("names a missing file", async () => {
      const source = join(folder, "nowhere", "at-all");
      expect((await readAll(format, source)).thrown).toMatchObject({ code: "FILE_MISSING", where: source });
      await expect(format.detect(source)).rejects.toMatchObject({ code: "FILE_MISSING" });
      await expect(validateFile(source, format.id)).rejects.toMatchObject({ code: "FILE_MISSING" });
      // Nothing to go on with: skipping bad records does not hide it.
      const skipping = await readAll(format, source, { onBad: () => {} });
      expect(skipping.thrown).toMatchObject({ code: "FILE_MISSING" });
    });

    describe.each(BAD_RECORDS)("$name", ({ bytes, code, max: maxRecordBytes }) => {
      test("ends the reading after the good records before it", async () => {
        const { source, where } = await plant(await newFolder(), 3, bytes());
        const { read, thrown } = await readAll(format, source, { maxRecordBytes });
        expect(read).toHaveLength(3);
        expect(thrown).toBeInstanceOf(RootstepError);
        expect(thrown).toMatchObject({ code, where: expect.stringContaining(where) });
      });

      test("is counted and skipped with onBad", async () => {
        const { source, where } = await plant(await newFolder(), 3, bytes());
        const bad: RootstepError[] = [];
        const { read, thrown } = await readAll(format, source, { maxRecordBytes, onBad: (error) => bad.push(error) });
        expect(thrown).toBeUndefined();
        expect(read).toHaveLength(6);
        expect(bad).toHaveLength(1);
        expect(bad[0]).toMatchObject({ code, where: expect.stringContaining(where) });
      });
    });

    test("validation lists file, JSON path and message of every fault", async () => {
      const { source, where } = await plant(await newFolder(), 2, text("{}"));
      const found = await validateFile(source);
      expect(found).toMatchObject({ format: format.id, records: 4, badRecords: 1 });
      expect(found.faults.length).toBeGreaterThan(0);
      for (const fault of found.faults) {
        expect(fault.where).toBe(where);
        expect(fault.path).not.toBe("");
        expect(fault.message).not.toBe("");
      }
    });

    test("refuses to write two trajectories of one id, or a label outside its log, and leaves nothing behind", async () => {
      const [sample] = fc.sample(trajectories, { numRuns: 1, seed: 1 });
      const good = sample![0]!;
      const outside = { ...good, labels: [{ agent: "a", step: good.steps.length, source: "human" as const }] };
      for (const [written, code] of [
        [[good, good], "DATA_DUPLICATE_ID"],
        [[outside], "LABEL_OUTSIDE"],
      ] as const) {
        const place = await newTarget();
        await expect(format.write(written, place)).rejects.toMatchObject({ code });
        expect(await readdir(join(place, ".."))).toEqual([]);
      }
    });

    test("passes on the failure of its source, and leaves nothing behind", async () => {
      const [sample] = fc.sample(trajectories, { numRuns: 1, seed: 1 });
      async function* failing(): AsyncGenerator<Trajectory> {
        yield sample![0]!;
        throw new RootstepError("BUDGET_REACHED", { what: "enough" });
      }
      const place = await newTarget();
      await expect(format.write(failing(), place)).rejects.toMatchObject({ code: "BUDGET_REACHED" });
      expect(await readdir(join(place, ".."))).toEqual([]);
    });

    test("damaged bytes give good records or catalogue errors, never a crash", async () => {
      const property = fc.asyncProperty(trajectories, anyDamage, fc.boolean(), async (written, damage, skip) => {
        const source = await newTarget();
        await format.write(written, source);
        const files = await filesBelow(source);
        const file = files[damage.file % files.length]!;
        await writeFile(file, damaged(await readFile(file), damage));
        const bad: unknown[] = [];
        const { read, thrown } = await readAll(format, source, skip ? { onBad: (error) => bad.push(error) } : {});
        for (const error of [...bad, ...(thrown === undefined ? [] : [thrown])]) {
          expect(error).toBeInstanceOf(RootstepError);
          expect(error).not.toMatchObject({ code: "INTERNAL" });
        }
        if (skip) expect(thrown).toBeUndefined();
        for (const trajectory of read) expect(trajectorySchema.safeParse(trajectory).success).toBe(true);
        expect([0, 1]).toContain(await format.detect(source));
      });
      await checkSeeded(`${format.id} fuzz`, property, 300);
    });
  });
}

/** Everything a source gives, and what ended it early. */
export async function readAll(
  format: TrajectoryFormat,
  source: string,
  options: ReadOptions = {},
): Promise<{ read: Trajectory[]; thrown: unknown }> {
  const read: Trajectory[] = [];
  try {
    for await (const { trajectory } of format.read(source, options)) read.push(trajectory);
    return { read, thrown: undefined };
  } catch (thrown) {
    return { read, thrown };
  }
}

const byId = (trajectories: readonly Trajectory[]): Trajectory[] =>
  [...trajectories].sort((a, b) => (a.id < b.id ? -1 : 1));

async function filesBelow(source: string): Promise<string[]> {
  if (!(await stat(source)).isDirectory()) return [source];
  const entries = await readdir(source, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

interface Damage {
  readonly file: number;
  readonly edits: readonly { kind: "flip" | "cut" | "insert" | "delete" | "repeat"; at: number; bytes: Uint8Array }[];
}

const anyDamage: fc.Arbitrary<Damage> = fc.record({
  file: fc.nat(),
  edits: fc.array(
    fc.record({
      kind: fc.constantFrom("flip", "cut", "insert", "delete", "repeat"),
      at: fc.double({ min: 0, max: 1, noNaN: true }),
      bytes: fc.oneof(
        fc.uint8Array({ minLength: 1, maxLength: 8 }),
        fc.constantFrom("{", "}", "[", "]", '"', ",", "\n", "-1", "1e999", "null", '{"__proto__":1}').map(text),
      ),
    }),
    { minLength: 1, maxLength: 4 },
  ),
});

function damaged(original: Buffer, { edits }: Damage): Buffer {
  let bytes = original;
  for (const edit of edits) {
    const at = Math.floor(edit.at * bytes.length);
    const [before, after] = [bytes.subarray(0, at), bytes.subarray(at)];
    if (edit.kind === "cut") bytes = before;
    else if (edit.kind === "insert") bytes = Buffer.concat([before, edit.bytes, after]);
    else if (edit.kind === "delete") bytes = Buffer.concat([before, after.subarray(edit.bytes.length)]);
    else if (edit.kind === "flip") bytes = Buffer.concat([before, edit.bytes, after.subarray(edit.bytes.length)]);
    else bytes = Buffer.concat([before, after, after]);
  }
  return bytes;
}
