import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { openJournal } from "../../src/runs/journal.ts";
import { temporaryFolder } from "../temporary-folder.ts";

const schema = z.strictObject({ id: z.number(), text: z.string() });
const file = (): string => join(temporaryFolder("journal"), "records.jsonl");

describe("a journal", () => {
  it("gives back what was appended, in order", () => {
    const path = file();
    const journal = openJournal(path, schema);
    journal.append({ id: 1, text: "one\ntwo" });
    journal.append({ id: 2, text: "ü\u2028" });
    journal.close();
    const again = openJournal(path, schema);
    expect(again.existing).toEqual([
      { id: 1, text: "one\ntwo" },
      { id: 2, text: "ü\u2028" },
    ]);
    expect(again.repaired).toBe(0);
    again.close();
  });

  it("cuts a torn tail off, wherever the process was killed, and goes on after it (seed printed on failure)", () => {
    const records = [
      { id: 1, text: "ä".repeat(20) },
      { id: 2, text: "b" },
      { id: 3, text: "" },
    ];
    const whole = Buffer.from(records.map((record) => `${JSON.stringify(record)}\n`).join(""));
    fc.assert(
      fc.property(fc.nat(whole.length), (kept) => {
        const path = file();
        writeFileSync(path, whole.subarray(0, kept));
        const journal = openJournal(path, schema);
        const intact = whole.subarray(0, kept).toString("latin1").split("\n").length - 1;
        expect(journal.existing).toEqual(records.slice(0, intact));
        for (const record of records.slice(intact)) journal.append(record);
        journal.close();
        expect(readFileSync(path)).toEqual(whole);
      }),
    );
  });

  it.each([
    ["a line that is not JSON", "{bad}\n", /records\.jsonl:2$/u],
    ["a record of another shape", '{"id":"x","text":""}\n', /records\.jsonl:2 id$/u],
  ])("refuses %s, naming file, line and field", (_, line, where) => {
    const path = file();
    writeFileSync(path, '{"id":1,"text":"good"}\n');
    appendFileSync(path, line);
    expect(() => openJournal(path, schema)).toThrow(
      expect.objectContaining({ code: "RUN_CORRUPT", where: expect.stringMatching(where) }),
    );
  });
});
