import { appendFileSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { rewriteChunks } from "../../synth/proxy/rewrite-chunks.ts";
import { foldRetries } from "../../synth/tape/fold.ts";
import type { StoredCall } from "../../synth/tape/folder-schema.ts";
import { loadTape, type TapeFolder } from "../../synth/tape/loader.ts";
import { createRedactor } from "../../synth/tape/redact.ts";
import { requestKey } from "../../synth/tape/request-key.ts";
import { FIRST_SUM, sealLine } from "../../synth/tape/sealed-line.ts";
import { showTape } from "../../synth/tape/show.ts";
import { validateTape } from "../../synth/tape/validate.ts";
import { createTapeWriter } from "../../synth/tape/writer.ts";
import { completion, freshFolder, tapeHeader } from "./proxy-setting.ts";

interface Written {
  readonly lane?: string;
  readonly body?: string;
  readonly answer?: string | Buffer;
  readonly status?: number;
  readonly outcome?: StoredCall["response"]["outcome"];
  readonly retry?: number;
  readonly askedAt?: number;
  readonly tookMs?: number;
}

const callOf = (index: number, written: Written, body: (bytes: Uint8Array) => string): StoredCall => {
  const asked = Buffer.from(written.body ?? `{"n":${index}}`);
  const answer = written.answer ?? completion(`answer ${index}`);
  return {
    type: "call",
    index,
    lane: written.lane ?? "a",
    laneBy: "url",
    endpoint: "chat/completions",
    retry: written.retry ?? 0,
    from: "live",
    askedAt: written.askedAt ?? index * 10,
    tookMs: written.tookMs ?? 5,
    request: { headers: {}, body: body(asked), key: requestKey("chat/completions", asked) },
    response: {
      outcome: written.outcome ?? "complete",
      status: written.status ?? 200,
      headers: { "content-type": "application/json" },
      body: body(Buffer.from(answer)),
    },
  };
};

/** Writes a tape; without an end as a killed recorder would leave it. */
function written(calls: readonly Written[], isEnded = true): string {
  const folder = freshFolder("tape");
  const writer = createTapeWriter(folder, tapeHeader);
  calls.forEach((call, index) => {
    writer.call(callOf(index, call, (bytes) => writer.body(bytes)));
  });
  const end = { exitCode: 0, signal: null, timedOut: false, answer: "42" };
  if (isEnded) writer.end({ type: "end", calls: calls.length, stdout: writer.body(Buffer.from("out")), ...end });
  writer.close();
  return folder;
}

const tapeFile = (folder: string): string => join(folder, "tape.jsonl");
const bodiesFile = (folder: string): string => join(folder, "bodies.jsonl");
const answers = (tape: TapeFolder): string[] =>
  tape.calls.map(({ response }) => tape.bodies.get(response.body).toString("utf8"));

describe("a tape on disk", () => {
  it("gives back what was written, bodies byte for byte, each stored once", () => {
    const binary = Buffer.from([0, 255, 254, 10, 13, 128]);
    const unicode = "ünïcödé \u2028 \uFFFD \ud83d\ude42\n";
    const folder = written([{ answer: binary }, { answer: unicode }, { answer: unicode }]);
    const tape = loadTape(folder);
    expect(tape.header).toEqual(tapeHeader);
    expect(tape.end).toMatchObject({ calls: 3, answer: "42" });
    expect(tape.bodies.get(tape.calls[0]!.response.body)).toEqual(binary);
    expect(answers(tape).slice(1)).toEqual([unicode, unicode]);
    expect(tape.torn).toEqual([]);
    // three requests, two answers, the output
    expect(readFileSync(bodiesFile(folder), "utf8").trimEnd().split("\n")).toHaveLength(6);
    expect(validateTape(folder)).toEqual({ calls: 3, tools: 0, bodies: 6, ended: true, faults: [], torn: [] });
  });

  it("is never written over", () => {
    const folder = written([{}]);
    expect(() => createTapeWriter(folder, tapeHeader)).toThrowError(expect.objectContaining({ code: "USAGE" }));
  });

  it("keeps every complete call wherever either file is cut off", () => {
    const whole = written([{}, {}, {}], false);
    const [calls, bodies] = [readFileSync(tapeFile(whole)), readFileSync(bodiesFile(whole))];
    const headerEnd = calls.indexOf("\n") + 1;
    for (let size = headerEnd; size <= calls.length; size += 13) {
      const folder = written([{}, {}, {}], false);
      truncateSync(tapeFile(folder), size);
      const complete = calls.subarray(0, size).toString().split("\n").length - 2;
      const tape = loadTape(folder);
      expect(tape.calls).toHaveLength(complete);
      expect(answers(tape)).toEqual([0, 1, 2].slice(0, complete).map((index) => completion(`answer ${index}`)));
    }
    for (let size = 0; size < bodies.length; size += 29) {
      const folder = written([{}, {}, {}], false);
      truncateSync(bodiesFile(folder), size);
      const complete = Math.floor((bodies.subarray(0, size).toString().split("\n").length - 1) / 2);
      const isTorn = size > 0 && bodies[size - 1] !== 0x0a;
      if (isTorn) {
        const tape = loadTape(folder);
        expect(tape.calls).toHaveLength(complete);
        expect(tape.torn.length).toBeGreaterThan(0);
      } else {
        // Cut between two lines no torn line tells of it: what is missing is a fault.
        expect(() => loadTape(folder)).toThrowError(expect.objectContaining({ code: "TAPE_DAMAGED" }));
      }
    }
  });

  it.each([
    ["a changed lane", (text: string) => text.replace('"lane":"b"', '"lane":"c"'), "tape.jsonl:3"],
    ["a changed status", (text: string) => text.replace('"status":500', '"status":200'), "tape.jsonl:4"],
    ["a line taken out", (text: string) => text.split("\n").toSpliced(2, 1).join("\n"), "tape.jsonl:3"],
    [
      "two lines swapped",
      (text: string) => {
        const [header, first, second, ...rest] = text.split("\n");
        return [header, second, first, ...rest].join("\n");
      },
      "tape.jsonl:2",
    ],
    ["a line that is none of a tape", (text: string) => text.replace(/\n(.*)\n/u, "\nhello\n"), "tape.jsonl:2"],
    ["an end that counts other calls", (text: string) => text.replace('"calls":3', '"calls":2'), "tape.jsonl:5"],
  ])("says where %s is, when loaded and when validated", (_, edit, where) => {
    const folder = written([{}, { lane: "b" }, { status: 500 }]);
    writeFileSync(tapeFile(folder), edit(readFileSync(tapeFile(folder), "utf8")));
    expect(() => loadTape(folder)).toThrowError(
      expect.objectContaining({ code: "TAPE_DAMAGED", where: expect.stringContaining(where) }),
    );
    expect(validateTape(folder).faults[0]).toMatchObject({ where: expect.stringContaining(where) });
  });

  it("finds a body that was changed, when it is read and when validated", () => {
    const folder = written([{}, {}]);
    writeFileSync(bodiesFile(folder), readFileSync(bodiesFile(folder), "utf8").replace("answer 1", "answer 7"));
    const tape = loadTape(folder);
    expect(() => answers(tape)).toThrowError(
      expect.objectContaining({ where: expect.stringContaining("bodies.jsonl:4") }),
    );
    expect(validateTape(folder).faults).toMatchObject([{ where: expect.stringContaining("bodies.jsonl:4") }]);
  });

  it("names a missing body, a missing file, a folder that is no tape, another version", () => {
    const folder = written([{}, {}]);
    const lines = readFileSync(bodiesFile(folder), "utf8").split("\n");
    writeFileSync(bodiesFile(folder), lines.toSpliced(1, 1).join("\n"));
    expect(validateTape(folder).faults[0]?.where).toContain("tape.jsonl:2");
    expect(() => loadTape(freshFolder("none"))).toThrowError(expect.objectContaining({ code: "FILE_MISSING" }));
    const other = written([]);
    writeFileSync(tapeFile(other), sealLine(FIRST_SUM, { ...tapeHeader, version: 2, more: true }).line);
    expect(validateTape(other).faults.map(({ code }) => code)).toEqual(["TAPE_VERSION"]);
    expect(() => loadTape(other)).toThrowError(/layout version 2, this rootstep reads version 1/u);
  });

  it("goes on reading where a recorder is still writing", () => {
    const folder = written([{}], false);
    appendFileSync(tapeFile(folder), '{"sum":"00');
    expect(loadTape(folder)).toMatchObject({ end: undefined, torn: [expect.stringContaining("tape.jsonl:3")] });
  });

  it("opens 45,000 calls and finds any of them", { timeout: 120_000 }, () => {
    const folder = freshFolder("tape");
    const writer = createTapeWriter(folder, tapeHeader);
    for (let index = 0; index < 45_000; index++) writer.call(callOf(index, {}, (bytes) => writer.body(bytes)));
    writer.close();
    const tape = loadTape(folder);
    expect(tape.calls).toHaveLength(45_000);
    expect(tape.bodies.get(tape.calls[44_999]!.response.body).toString()).toBe(completion("answer 44999"));
  });

  it("is shown as a table: numbers as --cut takes them, model, status, tokens, first words", () => {
    const tool = { id: "c", type: "function", function: { name: "search", arguments: '{"q":1}' } };
    const sse = [
      '{"model":"s","choices":[{"index":0,"delta":{"content":"Hel"}}]}',
      '{"choices":[{"index":0,"delta":{"content":"lo"}}]}',
    ]
      .map((data) => `data: ${data}\n\n`)
      .join("");
    const folder = written([
      { status: 429, answer: '{"error":{"message":"slow down"}}', body: "{}" },
      {
        answer: completion("Twelve\n  apples are left, says the planner, and it goes on for longer than a row."),
        body: "{}",
      },
      { answer: sse },
      { answer: JSON.stringify({ choices: [{ message: { content: null, tool_calls: [tool] } }] }) },
    ]);
    expect(showTape(loadTape(folder))).toMatchObject([
      { call: undefined, kept: "retried", status: 429, words: "slow down" },
      {
        call: 0,
        kept: "yes",
        model: "m",
        promptTokens: 3,
        completionTokens: 2,
        words: "Twelve apples are left, says the planner, and it goes on fo…",
      },
      { call: 1, model: "s", words: "Hello" },
      { call: 2, words: 'search({"q":1})' },
    ]);
  });
});

describe("folding retries", () => {
  const folded = (calls: readonly Written[]) => {
    const stored = calls.map((call, index) => callOf(index, call, () => "0".repeat(64)));
    const { calls: kept, retried, failed } = foldRetries(stored);
    return [kept, retried, failed].map((list) => list.map(({ index }) => index));
  };
  const same = { body: "same" };

  it.each([408, 429, 500, 502, 503, 529])("folds an attempt that got %d into the same request's next", (status) => {
    expect(folded([{ ...same, status }, same])).toEqual([[1], [0], []]);
  });

  it("keeps answers that are errors for good reason: the program saw them", () => {
    expect(folded([{ ...same, status: 400 }, { ...same, status: 404 }, same])).toEqual([[0, 1, 2], [], []]);
  });

  it("folds marked retries of answers the client never had, cut and aborted ones, chains of them", () => {
    expect(folded([same, { ...same, retry: 1 }])).toEqual([[1], [0], []]);
    expect(folded([{ ...same, outcome: "cut" }, { ...same, outcome: "aborted" }, same])).toEqual([[2], [0, 1], []]);
    expect(
      folded([
        { ...same, status: 500 },
        { ...same, status: 500, retry: 1 },
      ]),
    ).toEqual([[], [0], [1]]);
  });

  it("does not take another lane, another body or a request under way at once for a retry", () => {
    expect(
      folded([
        { ...same, status: 500 },
        { ...same, lane: "b" },
      ]),
    ).toEqual([[1], [], [0]]);
    expect(folded([{ ...same, status: 500 }, { body: "other" }])).toEqual([[1], [], [0]]);
    expect(
      folded([
        { ...same, status: 500, askedAt: 0, tookMs: 50 },
        { ...same, askedAt: 10 },
      ]),
    ).toEqual([[1], [], [0]]);
  });

  it("keeps a cut or aborted answer that nobody asked for again", () => {
    expect(folded([{ outcome: "cut" }, { outcome: "aborted" }, { outcome: "unreachable", status: 502 }])).toEqual([
      [0, 1],
      [],
      [2],
    ]);
  });
});

describe("redaction", () => {
  const redact = createRedactor(["known-secret-value", "short"]);

  it.each([
    ['{"api_key": "abc"}', '{"api_key": "[redacted]"}'],
    ['{"Authorization":"Bearer x"}', '{"Authorization":"[redacted]"}'],
    [String.raw`{"arguments":"{\"password\":\"p w\"}"}`, String.raw`{"arguments":"{\"password\":\"[redacted]\"}"}`],
    ["text known-secret-value text", "text [redacted] text"],
    [`b64 ${Buffer.from("known-secret-value").toString("base64")}`, "b64 [redacted]"],
    ["?api-key=abc&x=1&token=t", "?api-key=[redacted]&x=1&token=[redacted]"],
    [`use hf_${"a".repeat(34)}.`, "use [redacted]."],
    [`AKIA${"A1".repeat(8)}`, "[redacted]"],
  ])("%s", (text, clean) => {
    expect(redact(text)).toBe(clean);
    expect(redact(clean)).toBe(clean);
  });

  it.each([
    '{"max_tokens":5,"logit_bias":{},"key":"a plain key","token":"the"}',
    '{"properties":{"password":{"type":"string"}}}',
    "The task-oriented disk-based sk-short approach.",
    '{"usage":{"total_tokens":5}}',
  ])("leaves %s", (text) => {
    expect(redact(text)).toBe(text);
  });
});

describe("rewriting a stream", () => {
  it("gives the rewritten text whatever the cuts between deltas and between chunks, and keeps other events as they are", () => {
    const OLD = "0f0f0f0f-1111-4222-8333-444444444444";
    const NEW = "abababab-5555-4666-8777-888888888888";
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.constant(OLD), fc.string({ maxLength: 8 })), { maxLength: 6 }),
        fc.array(fc.nat(200), { maxLength: 8 }),
        fc.array(fc.nat(2000), { maxLength: 8 }),
        (parts, textCuts, byteCuts) => {
          const text = parts.join("");
          const pieces = cutAt(text, textCuts);
          const events = pieces.map(
            (content) => `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`,
          );
          const bytes = Buffer.from([": comment\n\n", ...events, "data: [DONE]\n\n"].join(""));
          const chunks = cutBytes(bytes, byteCuts);
          const rewritten = Buffer.concat([...rewriteChunks(chunks, (whole) => whole.replaceAll(OLD, NEW))]).toString();
          const said = [...rewritten.matchAll(/^data: (\{.*)$/gmu)].map(
            ([, data]) => JSON.parse(data ?? "").choices[0].delta.content,
          );
          expect(said.join("")).toBe(text.replaceAll(OLD, NEW));
          expect(rewritten.startsWith(": comment\n\n")).toBe(true);
          expect(rewritten.endsWith("data: [DONE]\n\n")).toBe(true);
        },
      ),
      { seed: 7, numRuns: 300 },
    );
  });
});

function cutAt(text: string, at: readonly number[]): string[] {
  const cuts = [0, ...at.map((cut) => Math.min(cut, text.length)).sort((a, b) => a - b), text.length];
  return cuts.slice(1).map((end, index) => text.slice(cuts[index], end));
}

function cutBytes(bytes: Buffer, at: readonly number[]): Buffer[] {
  const cuts = [0, ...at.map((cut) => Math.min(cut, bytes.length)).sort((a, b) => a - b), bytes.length];
  return cuts.slice(1).map((end, index) => bytes.subarray(cuts[index], end));
}
