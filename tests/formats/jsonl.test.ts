import { createReadStream } from "node:fs";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { constants, gunzipSync, gzipSync } from "node:zlib";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RootstepError } from "../../src/errors.ts";
import { MAX_NESTING } from "../../src/formats/json-bytes.ts";
import { type JsonLinesOptions, readJsonLines, writeJsonLines } from "../../src/formats/jsonl.ts";
import { checkSeeded } from "./seeded.ts";

let folder = "";
let fresh = 0;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "rootstep-jsonl-"));
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

async function fileOf(content: string | Uint8Array, name = "x.jsonl"): Promise<string> {
  const file = join(folder, `${++fresh}-${name}`);
  await writeFile(file, content);
  return file;
}

interface Reading {
  values: unknown[];
  lines: number[];
  bad: string[];
  thrown: unknown;
}

/** What a file gives; with `skip` bad lines are gone past. Errors as "CODE:line". */
async function readingOf(file: string, options: JsonLinesOptions & { skip?: boolean } = {}): Promise<Reading> {
  const reading: Reading = { values: [], lines: [], bad: [], thrown: undefined };
  const onBad = (error: RootstepError): void => {
    reading.bad.push(`${error.code}:${error.where!.slice(file.length + 1)}`);
  };
  try {
    for await (const { line, value } of readJsonLines(file, { ...options, ...(options.skip ? { onBad } : {}) })) {
      reading.lines.push(line);
      reading.values.push(value);
    }
  } catch (thrown) {
    reading.thrown = thrown;
  }
  return reading;
}

describe("readJsonLines", () => {
  test("numbers lines from 1, skips blank ones, takes LF and CRLF, and a last line without its newline", async () => {
    const reading = await readingOf(await fileOf('{"a":1}\r\n\n  \t\r\n2\n"drei"'));
    expect(reading).toEqual({ values: [{ a: 1 }, 2, "drei"], lines: [1, 4, 5], bad: [], thrown: undefined });
  });

  test("tolerates a byte order mark at the start only", async () => {
    const { values, bad } = await readingOf(await fileOf("\ufeff1\n\ufeff2\n3\n"), { skip: true });
    expect({ values, bad }).toEqual({ values: [1, 3], bad: ["DATA_NOT_JSON:2"] });
  });

  test("an empty file has no values; an empty gzip file is cut", async () => {
    expect(await readingOf(await fileOf(""))).toMatchObject({ values: [], thrown: undefined });
    expect((await readingOf(await fileOf("", "x.gz"), { skip: true })).bad).toEqual(["DATA_TRUNCATED:1"]);
  });

  test("a last line that does not parse and has no newline is a cut file; with a newline it is bad JSON", async () => {
    expect((await readingOf(await fileOf('1\n{"a":'))).thrown).toMatchObject({ code: "DATA_TRUNCATED" });
    expect((await readingOf(await fileOf('1\n{"a":\n'))).thrown).toMatchObject({ code: "DATA_NOT_JSON" });
    const inCharacter = Buffer.from('1\n{"a":"é').subarray(0, -1);
    expect((await readingOf(await fileOf(inCharacter), { skip: true })).bad).toEqual(["DATA_TRUNCATED:2"]);
  });

  test("errors do not quote the data, which may hold secrets", async () => {
    const { thrown } = await readingOf(await fileOf('{"key": sk-verysecret}\n'));
    expect(thrown).toMatchObject({ code: "DATA_NOT_JSON", cause: undefined });
    expect(String(thrown)).not.toContain("secret");
  });

  test("goes past each bad line with onBad, and counts it once", async () => {
    const content = Buffer.concat([
      Buffer.from("1\nnope\n2\n"),
      Buffer.from([0x22, 0xff, 0x22, 0x0a]),
      Buffer.from(`3\n"\u0000"\n4\n"${"long".repeat(50_000)}"\n5\n${"[".repeat(1e5)}${"]".repeat(1e5)}\n6\n`),
    ]);
    const { values, bad } = await readingOf(await fileOf(content), { skip: true, maxLineBytes: 200_001 });
    expect(values).toEqual([1, 2, 3, 4, 5, 6]);
    expect(bad).toEqual(["DATA_NOT_JSON:2", "DATA_INVALID:4", "DATA_INVALID:6", "DATA_INVALID:8", "DATA_INVALID:10"]);
  });

  test("the limits are the last good case: line length and nesting", async () => {
    const { values } = await readingOf(await fileOf('"345678"\n'), { maxLineBytes: 8 });
    expect(values).toEqual(["345678"]);
    expect((await readingOf(await fileOf('"3456789"\n'), { maxLineBytes: 8 })).thrown).toMatchObject({
      code: "DATA_INVALID",
    });
    expect((await readingOf(await fileOf('"3456789'), { maxLineBytes: 8, skip: true })).bad).toEqual([
      "DATA_TRUNCATED:1",
    ]);
    expect((await readingOf(await fileOf('"34567890'), { maxLineBytes: 8, skip: true })).bad).toEqual([
      "DATA_INVALID:1",
    ]);
    const nested = (depth: number): string => `${"[".repeat(depth)}${"]".repeat(depth)}\n`;
    expect((await readingOf(await fileOf(nested(MAX_NESTING)))).thrown).toBeUndefined();
    expect((await readingOf(await fileOf(nested(MAX_NESTING + 2)))).thrown).toMatchObject({ code: "DATA_INVALID" });
  });

  test("a UTF-16 file is named as such, once", async () => {
    const { values, bad } = await readingOf(await fileOf(Buffer.from("\ufeff1\n2\n", "utf16le")), { skip: true });
    expect({ values, bad }).toEqual({ values: [], bad: ["DATA_INVALID:1"] });
  });

  test("a missing file and a folder are no bad lines", async () => {
    for (const path of [join(folder, "no"), join(folder, "no.gz"), folder]) {
      const reading = await readingOf(path, { skip: true });
      expect(reading).toMatchObject({ values: [], bad: [], thrown: { code: "FILE_MISSING", where: path } });
    }
  });

  test("takes gzip of several members", async () => {
    const file = await fileOf(Buffer.concat([gzipSync("1\n2"), gzipSync("3\n4\n")]), "x.gz");
    expect((await readingOf(file)).values).toEqual([1, 23, 4]);
  });

  test("reports what is not gzip: from the start, behind good data, in its middle", async () => {
    expect((await readingOf(await fileOf("1\n2\n", "x.gz"), { skip: true })).bad).toEqual(["DATA_INVALID:1"]);
    const behind = await readingOf(await fileOf(Buffer.concat([gzipSync("1\n2\n"), Buffer.from("3\n")]), "x.gz"), {
      skip: true,
    });
    expect(behind).toMatchObject({ values: [1, 2], bad: ["DATA_INVALID:3"] });
    const numbers = Array.from({ length: 200_000 }, (_, i) => i);
    const packed = gzipSync(numbers.map((number) => `${number}\n`).join(""));
    const middle = Math.floor(packed.length / 2);
    packed.fill(0xff, middle, middle + 64);
    const intact = gunzipSync(packed.subarray(0, middle), { finishFlush: constants.Z_SYNC_FLUSH }).toString();
    const whole = intact.split("\n").slice(0, -1).map(Number);
    // Damaged bytes may unpack to nonsense for a while before zlib notices: the first bad line is at or after the damage.
    const broken = await readingOf(await fileOf(packed, "x.gz"));
    expect(broken.values.slice(0, whole.length)).toEqual(whole);
    expect(whole.length).toBeGreaterThan(numbers.length / 4);
    expect(broken.thrown).toMatchObject({ code: expect.stringMatching(/^DATA_/) });
  });

  test("a gzip file cut anywhere gives every whole line before the cut, then names the line", async () => {
    const lines = Array.from({ length: 3000 }, (_, i) =>
      JSON.stringify({ i, text: `${(i * 7919) % 10_007}`.repeat(9) }),
    );
    const packed = gzipSync(`${lines.join("\n")}\n`);
    const property = fc.asyncProperty(fc.nat({ max: packed.length - 1 }), async (length) => {
      const cut = packed.subarray(0, length);
      // Independent of the reader: zlib unpacks what is there at once.
      const intact = gunzipSync(cut, { finishFlush: constants.Z_SYNC_FLUSH }).toString();
      const whole = intact.split("\n").slice(0, -1);
      const { values, bad } = await readingOf(await fileOf(cut, "x.gz"), { skip: true });
      expect(values).toEqual(whole.map((line) => JSON.parse(line)));
      expect(bad).toEqual([`DATA_TRUNCATED:${whole.length + 1}`]);
    });
    await checkSeeded("cut gzip", property, 40);
  });

  test("reads no further than it is asked to", async () => {
    const file = await fileOf(`1\n${"nope\n".repeat(100)}`);
    for await (const { value } of readJsonLines(file)) {
      expect(value).toBe(1);
      break;
    }
  });

  test("holds lines across chunks whole", async () => {
    const values = [1, 70_000, 3, 200_000, 65_535, 65_536].map((length) => "é".repeat(length));
    const file = await fileOf(values.map((value) => `${JSON.stringify(value)}\n`).join(""));
    expect((await readingOf(file)).values).toEqual(values);
  });
});

describe("writeJsonLines", () => {
  test("writes what the reader reads, plain and gzipped, and makes the folder", async () => {
    const property = fc.asyncProperty(fc.array(fc.jsonValue()), fc.boolean(), async (values, gzip) => {
      const file = join(folder, "made", String(++fresh), gzip ? "x.jsonl.gz" : "x.jsonl");
      const plain: unknown[] = JSON.parse(JSON.stringify(values));
      await writeJsonLines(file, values);
      expect((await readingOf(file)).values).toEqual(plain);
      expect(await readdir(join(file, ".."))).toHaveLength(1);
    });
    await checkSeeded("JSON lines round trip", property, 60);
  });

  test("gzips if the name says so", async () => {
    const file = join(folder, "magic.jsonl.gz");
    await writeJsonLines(file, [1]);
    for await (const chunk of createReadStream(file)) expect([chunk[0], chunk[1]]).toEqual([0x1f, 0x8b]);
  });

  test("leaves the old file alone when the values fail, and nothing beside it", async () => {
    const file = join(folder, "kept", "x.jsonl");
    await writeJsonLines(file, ["old"]);
    async function* failing(): AsyncGenerator<unknown> {
      yield "new";
      throw new Error("no more");
    }
    await expect(writeJsonLines(file, failing())).rejects.toThrow("no more");
    expect(await readFile(file, "utf8")).toBe('"old"\n');
    expect(await readdir(join(folder, "kept"))).toEqual(["x.jsonl"]);
  });

  test("says which path cannot be written", async () => {
    const file = join(await fileOf("in the way"), "x.jsonl");
    await expect(writeJsonLines(file, [1])).rejects.toMatchObject({ code: "FILE_UNREADABLE", where: file });
  });
});
