import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { rewriteChunks } from "../../synth/proxy/rewrite-chunks.ts";
import { createBindings } from "../../synth/tape/bindings.ts";
import { maskText, withOwnIds } from "../../synth/tape/masks.ts";

/** What a coordinator of CAMEL's Workforce answers: ids of workers in JSON, also inside the JSON of a tool call. */
const assignments = (ids: readonly string[], indent: number): string =>
  JSON.stringify(
    { assignments: ids.map((id, n) => ({ task_id: `0.${n + 1}`, assignee_id: id, note: `to ${id}\nor nobody` })) },
    undefined,
    indent,
  );

const uuid = fc.uuid({ version: 4 });
const ids = fc.uniqueArray(uuid, { minLength: 2, maxLength: 8 }).filter(({ length }) => length % 2 === 0);
const cuts = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 12 });

/** The text in pieces of these lengths, over and over. */
function pieces(text: string, lengths: readonly number[]): string[] {
  const made: string[] = [];
  for (let from = 0, n = 0; from < text.length; n++) {
    const length = lengths[n % lengths.length]!;
    made.push(text.slice(from, from + length));
    from += length;
  }
  return made;
}

const event = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`;

interface SeenCall {
  readonly index: number;
  readonly function: { readonly arguments: string };
}
interface SeenEvent {
  readonly choices: readonly [
    { readonly delta: { readonly content?: string; readonly tool_calls: readonly SeenCall[] } },
  ];
  readonly delta?: string;
  readonly text?: string;
  readonly response: { readonly output: readonly [{ readonly content: readonly [{ readonly text: string }] }] };
}
const dataOf = (stream: string): SeenEvent[] =>
  [...stream.matchAll(/^data: (\{.*)$/gmu)].map(([, data]): SeenEvent => JSON.parse(data!));
const whole = (chunks: readonly Buffer[]): string => Buffer.concat([...chunks]).toString("utf8");

/** A run in which the first half of the ids was recorded and the second half stands in their place. */
function bound(all: readonly string[]) {
  const [old, now] = [all.slice(0, all.length / 2), all.slice(all.length / 2)];
  const bindings = createBindings();
  const tokens = (list: readonly string[]) => maskText(list.map((id) => `worker ${id}`).join("\n")).tokens;
  expect(bindings.bind(tokens(old), tokens(now))).toBe(true);
  return { old, now, rewrite: bindings.rewriter()! };
}

describe("a recorded answer with this run's ids in it", () => {
  it("whole: in text and in the arguments of tool calls", () => {
    fc.assert(
      fc.property(ids, fc.constantFrom(0, 2), (all, indent) => {
        const { old, now, rewrite } = bound(all);
        const body = (list: readonly string[]): string => {
          const call = { id: "c", function: { name: "assign", arguments: assignments(list, indent) } };
          return JSON.stringify({ choices: [{ message: { content: assignments(list, indent), tool_calls: [call] } }] });
        };
        expect(whole(rewriteChunks([Buffer.from(body(old))], rewrite))).toBe(body(now));
      }),
    );
  });

  it("streamed: whatever pieces the text and two tool calls came in, and however the bytes were cut", () => {
    fc.assert(
      fc.property(ids, cuts, cuts, (all, deltas, bytes) => {
        const { old, now, rewrite } = bound(all);
        const text = pieces(assignments(old, 2), deltas);
        const calls = [0, 1].map((index) => pieces(assignments([...old].reverse(), index), deltas));
        const events = Array.from({ length: Math.max(text.length, ...calls.map(({ length }) => length)) }, (_, n) => {
          const toolCalls = calls.flatMap((list, index) =>
            list[n] === undefined ? [] : [{ index, function: { arguments: list[n] } }],
          );
          const delta = { ...(text[n] === undefined ? {} : { content: text[n] }), tool_calls: toolCalls };
          return event({ choices: [{ index: 0, delta }] });
        });
        const stream = `${events.join("")}data: [DONE]\n\n`;
        const chunks = pieces(
          stream,
          bytes.map((length) => length * 17),
        ).map((piece) => Buffer.from(piece));
        const seen = dataOf(whole(rewriteChunks(chunks, rewrite))).map(({ choices }) => choices[0].delta);
        expect(seen.map(({ content }) => content ?? "").join("")).toBe(assignments(now, 2));
        for (const index of [0, 1]) {
          const said = seen.flatMap(({ tool_calls }) => tool_calls.filter((call) => call.index === index));
          const joined = said.map((call) => call.function.arguments).join("");
          expect(joined).toBe(assignments([...now].reverse(), index));
        }
        expect(seen).toHaveLength(events.length);
      }),
    );
  });

  it("streamed as Responses: deltas, the finished item and the finished response say the same", () => {
    fc.assert(
      fc.property(ids, cuts, (all, deltas) => {
        const { old, now, rewrite } = bound(all);
        const place = { item_id: "i", output_index: 0, content_index: 0 };
        const said = assignments(old, 0);
        const stream = [
          ...pieces(said, deltas).map((delta) => event({ type: "response.output_text.delta", ...place, delta })),
          event({ type: "response.output_text.done", ...place, text: said }),
          event({ type: "response.completed", response: { output: [{ content: [{ text: said }] }] } }),
        ].join("");
        const seen = dataOf(whole(rewriteChunks([Buffer.from(stream)], rewrite)));
        const expected = assignments(now, 0);
        expect(seen.map(({ delta }) => delta ?? "").join("")).toBe(expected);
        expect(seen.at(-2)).toMatchObject({ text: expected });
        expect(seen.at(-1)?.response.output[0].content[0].text).toBe(expected);
      }),
    );
  });

  it("puts no id into a word that only holds its letters, and an id of four letters where it stands alone", () => {
    const bindings = createBindings();
    const pattern = withOwnIds(["(?<=^Agent )\\w{4}(?= as a )"]);
    const tokens = (id: string) => maskText(`Agent ${id} as a checker`, pattern).tokens;
    expect(bindings.bind(tokens("Star"), tokens("x7Qp"))).toBe(true);
    const rewrite = bindings.rewriter()!;
    expect(rewrite("Star: Agent Star, not Starling or a BlueStar")).toBe(
      "x7Qp: Agent x7Qp, not Starling or a BlueStar",
    );
    expect(rewrite('{"text":"line\\nStar\\tStar, \\u003cStar\\u003e and anStar"}')).toBe(
      '{"text":"line\\nx7Qp\\tx7Qp, \\u003cx7Qp\\u003e and anStar"}',
    );
  });
});

describe("ids of a system's own making", () => {
  it("are masked where their pattern finds them, also after an escaped line break, and keep their identity", () => {
    const pattern = withOwnIds(["(?<=^Agent )\\w{4}(?= as a )", "^\\w{4}(?=: )"]);
    const { text, tokens } = maskText('"x\\nAgent a1B2 as a solver\\na1B2: 5\\nC3d4: 6 at 10:00:00"', pattern);
    expect(text).toBe('"x\nAgent <id1> as a solver\n<id1>: 5\n<id2>: 6 at <time>"');
    expect(tokens.map(({ value }) => value)).toEqual(["a1B2", "a1B2", "C3d4", "10:00:00"]);
    expect(maskText("Agent a1B2 as a solver").text).toBe("Agent a1B2 as a solver");
  });

  it("may have any pattern that is a regular expression", () => {
    expect(() => withOwnIds(["(open"])).toThrowError(expect.objectContaining({ code: "USAGE" }));
  });
});
