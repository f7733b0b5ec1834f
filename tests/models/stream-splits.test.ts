import fc from "fast-check";
import { expect, test } from "vitest";
import { readCompletionStream } from "../../src/models/read-completion.ts";
import { eventsOf } from "./openai-server.ts";
import { MODEL, SCENARIOS, type Scenario } from "./scenarios.ts";

const SEED = 20_250_101;
const place = { where: "http://127.0.0.1:1/v1", secrets: [] };

async function* split(bytes: Uint8Array, cuts: readonly number[]): AsyncGenerator<Uint8Array> {
  let from = 0;
  for (const cut of [...cuts].sort((a, b) => a - b)) {
    yield bytes.subarray(from, cut);
    from = cut;
  }
  yield bytes.subarray(from);
}

const NEWLINES = { "\\n": "\n", "\\r\\n": "\r\n", "\\r": "\r" };

for (const [name, scenario] of Object.entries(SCENARIOS) as [string, Scenario][]) {
  for (const [shown, newline] of Object.entries(NEWLINES)) {
    test(`"${name}" with ${shown} line ends is the same answer however its bytes are cut (seed ${SEED})`, async () => {
      const text = eventsOf(scenario, true).join(": comment\nid: 7\nretry: 10\nunknown: 1\n");
      const bytes = new TextEncoder().encode(text.replaceAll("\n", newline));
      await fc.assert(
        fc.asyncProperty(fc.array(fc.nat(bytes.length), { maxLength: 60, size: "max" }), async (cuts) => {
          expect(await readCompletionStream(split(bytes, cuts), MODEL, place)).toEqual(scenario.response);
        }),
        { seed: SEED, numRuns: 60 },
      );
    });
  }
}

test("cut into single bytes, inside characters of three and four bytes, the answer is the same", async () => {
  const bytes = new TextEncoder().encode(eventsOf(SCENARIOS.text, true).join(""));
  const everywhere = Array.from({ length: bytes.length }, (_, i) => i);
  const answer = await readCompletionStream(split(bytes, everywhere), MODEL, place);
  expect(answer).toEqual(SCENARIOS.text.response);
});

test(`a stream cut anywhere before its finish reason is never taken for a whole one (seed ${SEED})`, async () => {
  const events = eventsOf(SCENARIOS.tools, true);
  const finish = events.findIndex((event) => event.includes('"finish_reason":"tool_calls"'));
  const bytes = new TextEncoder().encode(events.slice(0, finish + 1).join(""));
  await fc.assert(
    fc.asyncProperty(fc.nat(bytes.length - 2), async (end) => {
      await expect(readCompletionStream(split(bytes.subarray(0, end), []), MODEL, place)).rejects.toMatchObject({
        code: "MODEL_STREAM_CUT",
      });
    }),
    { seed: SEED, numRuns: 200 },
  );
});
