import type { StoredCall, TapeHeader } from "../../synth/tape/folder-schema.ts";
import { requestKey } from "../../synth/tape/request-key.ts";
import { createTapeWriter } from "../../synth/tape/writer.ts";

export const RUN = "bench";
export const TOKEN = "bench-token-0123456789abcdef";

export const benchHeader: TapeHeader = {
  type: "tape",
  version: 1,
  rootstep: "bench",
  run: RUN,
  startedAt: "2025-01-01T00:00:00.000Z",
  upstream: "http://127.0.0.1:1/v1",
  command: [],
  platform: {},
};

/** A prompt of an agent in the middle of its work: about 1 kB, none like another. */
export function bodyOf(index: number): string {
  const log = Array.from(
    { length: 12 },
    (_, line) =>
      `${line} solver: ${index + line} + ${line} = ${index + 2 * line}; the farmer now has that many apples.`,
  );
  return JSON.stringify({
    model: "bench-model",
    temperature: 0.7,
    messages: [
      {
        role: "system",
        content: "You are the solver. Carry out the calculation that the planner named, and nothing else.",
      },
      {
        role: "user",
        content: `Problem ${index}: a farmer has ${index} apples and sells some of them every day.\n\nLog:\n${log.join("\n")}\n\nTurn: solver.`,
      },
    ],
  });
}

export function answerTo(content: string): string {
  return JSON.stringify({
    id: "chatcmpl-bench",
    object: "chat.completion",
    created: 1_700_000_000,
    model: "bench-model",
    choices: [
      {
        index: 0,
        message: { role: "assistant", content: `The answer to a prompt of ${content.length} characters is 42.` },
        finish_reason: "stop",
      },
    ],
    usage: { prompt_tokens: 500, completion_tokens: 12, total_tokens: 512 },
  });
}

/** What the bare server answers to that body, made different for each: no two bodies of the tape are one. */
export function answerOf(index: number): string {
  return answerTo(`answer ${index}`).replace("chatcmpl-bench", `chatcmpl-bench-${index}`);
}

/** Pieces of the stream that the checks of behaviour record. */
export const STREAM_PIECES = 5;

export function streamPiece(index: number): string {
  const delta = { role: "assistant", content: `word${index} ` };
  const chunk = {
    id: "chatcmpl-bench",
    object: "chat.completion.chunk",
    created: 1_700_000_000,
    model: "bench-model",
    choices: [{ index: 0, delta, finish_reason: index === STREAM_PIECES - 1 ? "stop" : null }],
  };
  return `data: ${JSON.stringify(chunk)}\n\n`;
}

/** Writes a tape of that many distinct calls of one agent. */
export function writeBenchTape(folder: string, calls: number): void {
  const writer = createTapeWriter(folder, benchHeader);
  for (let index = 0; index < calls; index++) {
    const body = Buffer.from(bodyOf(index));
    const call: StoredCall = {
      type: "call",
      index,
      lane: "solver",
      laneBy: "url",
      endpoint: "chat/completions",
      retry: 0,
      from: "live",
      askedAt: index,
      tookMs: 1,
      request: { headers: {}, body: writer.body(body), key: requestKey("chat/completions", body) },
      response: {
        outcome: "complete",
        status: 200,
        headers: { "content-type": "application/json" },
        body: writer.body(Buffer.from(answerOf(index))),
      },
    };
    writer.call(call);
  }
  writer.close();
}
