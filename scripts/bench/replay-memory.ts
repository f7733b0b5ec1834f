import { flood, requestsOf } from "./replay-load.ts";
import type { Server } from "./replay-servers.ts";
import { startOwn } from "./replay-servers.ts";
import { bodyOf } from "./replay-tape.ts";

export interface MemoryPoint {
  readonly calls: number;
  readonly rssMb: number;
  /** After a garbage collection. */
  readonly heapMb: number;
}

export interface MemoryCourse {
  readonly record: readonly MemoryPoint[];
  readonly replay: readonly MemoryPoint[];
  /** Opening the tape of so many calls. */
  readonly loadMs: number;
}

const STEP = 10_000;
const CONNECTIONS = 16;

/** Records that many distinct calls through the proxy, then replays the tape, and looks at the memory on the way. */
export async function measureMemory(
  calls: number,
  tape: string,
  bare: Server,
  say: (text: string) => void,
): Promise<MemoryCourse> {
  say(`memory: recording ${calls} calls`);
  const recorder = await startOwn("record", tape, `http://127.0.0.1:${bare.target.port}/v1`);
  const record = await course(recorder, calls);
  await recorder.stop();
  say(`memory: replaying ${calls} calls`);
  const player = await startOwn("replay", tape);
  const replay = await course(player, calls);
  await player.stop();
  return { record, replay, loadMs: player.loadMs ?? Number.NaN };
}

async function course(server: Server, calls: number): Promise<MemoryPoint[]> {
  const points: MemoryPoint[] = [];
  for (let from = 0; from < calls; from += STEP) {
    const bodies = Array.from({ length: Math.min(STEP, calls - from) }, (_, at) => bodyOf(from + at));
    const { port } = server.target;
    const { failures } = await flood(port, requestsOf(server.target, bodies), CONNECTIONS, Number.POSITIVE_INFINITY);
    if (failures.length > 0) throw new Error(`the server answered ${failures[0]}`);
    const { rssBytes = Number.NaN, heapBytes = Number.NaN } = await server.usage(true);
    points.push({ calls: from + bodies.length, rssMb: rssBytes / 2 ** 20, heapMb: heapBytes / 2 ** 20 });
  }
  return points;
}
