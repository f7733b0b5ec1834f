import { readFileSync, truncateSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import type { Target } from "./replay-load.ts";
import { type Server, startOwn, startTracefork } from "./replay-servers.ts";
import { bodyOf, STREAM_PIECES } from "./replay-tape.ts";

/** What each tool makes of the same three recordings. */
export interface Behaviour {
  readonly name: string;
  /** Pieces in which a stream of `STREAM_PIECES` events and its end comes on replay. */
  readonly stream: string;
  /** What is answered for a recorded 429. */
  readonly status: string;
  /** Of 20 recorded calls, after the tape's file lost its last third. */
  readonly truncated: string;
}

const CALLS = 20;
/**
 * Asks the bare server to close its connections: tracefork 1.0.0 fails with "Event loop is closed", and loses its tape,
 * when it ends with one open.
 */
const CLOSING = { "x-bench-close": "1" };
const STREAMED = JSON.stringify({ ...JSON.parse(bodyOf(0)), stream: true });
const BUSY = JSON.stringify({ ...JSON.parse(bodyOf(0)), model: "busy" });

export interface Tool {
  readonly name: string;
  record(): Promise<Server>;
  /** Absent: what recorded also replays. */
  replay?(): Promise<Server>;
  /** Absent: it keeps nothing on disk. */
  readonly file?: string;
}

export function rootstepTool(folder: string, bare: Server): Tool {
  const tape = join(folder, "behaviour");
  return {
    name: "rootstep",
    record: () => startOwn("record", tape, `http://127.0.0.1:${bare.target.port}/v1`),
    replay: () => startOwn("replay", tape),
    file: join(tape, "tape.jsonl"),
  };
}

export function traceforkTool(folder: string, venv: string, bare: Server): Tool {
  const tape = join(folder, "behaviour.tape.sqlite");
  return {
    name: "tracefork",
    record: () => startTracefork(venv, tape, bare),
    replay: () => startTracefork(venv, tape),
    file: tape,
  };
}

export function litellmTool(running: Server): Tool {
  return { name: "LiteLLM", record: async () => ({ ...running, stop: async () => {} }) };
}

export async function behaviourOf(tool: Tool): Promise<Behaviour> {
  const recorder = await tool.record();
  const plain = Array.from({ length: CALLS }, (_, at) => bodyOf(1_000_000 + at));
  for (const body of [STREAMED, BUSY, ...plain]) await ask(recorder.target, body);
  await recorder.stop();
  const player = tool.replay === undefined ? recorder : await tool.replay();
  const [streamed, busy] = [await ask(player.target, STREAMED), await ask(player.target, BUSY)];
  if (tool.replay !== undefined) await player.stop();
  return {
    name: tool.name,
    stream: `${streamed.pieces} of ${STREAM_PIECES + 1}`,
    status: `${busy.status}${busy.text.includes("429") ? ", which says it was a 429" : ""}`,
    truncated: await afterTruncation(tool, plain),
  };
}

async function afterTruncation({ file, replay }: Tool, plain: readonly string[]): Promise<string> {
  if (file === undefined || replay === undefined) return "– (in memory)";
  truncateSync(file, Math.floor((readFileSync(file).length * 2) / 3));
  try {
    const player = await replay();
    let answered = 0;
    for (const body of plain) if ((await ask(player.target, body)).status === 200) answered++;
    await player.stop();
    return `${answered} of ${CALLS} calls replayed`;
  } catch (error) {
    const last = String(error).trim().split("\n").at(-1) ?? "";
    return `refused: ${last.slice(0, 80)}`;
  }
}

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly pieces: number;
}

function ask({ port, path, token }: Target, body: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers = { "content-type": "application/json", authorization: `Bearer ${token}`, ...CLOSING };
    const asked = request({ port, host: "127.0.0.1", path, method: "POST", headers }, (response) => {
      const parts: Buffer[] = [];
      response.on("data", (part: Buffer) => parts.push(part));
      response.on("end", () =>
        resolve({
          status: response.statusCode ?? 0,
          text: Buffer.concat(parts).toString("utf8"),
          pieces: parts.length,
        }),
      );
      response.on("error", reject);
    });
    asked.on("error", reject);
    asked.end(body);
  });
}
