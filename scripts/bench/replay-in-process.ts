/** Replays 20,000 calls of 1 kB in this process, round after round; sends calls per second and CPU time of each round. */
import type { ChatRequest } from "../../src/models/chat-model.ts";
import { createPlayer } from "../../synth/tape/player.ts";
import type { Tape } from "../../synth/tape/tape.ts";
import { bodyOf } from "./replay-tape.ts";

const CALLS = 20_000;

export interface InProcessRound {
  readonly callsPerSecond: number;
  readonly cpuMicros: number;
}

const prompts: Pick<ChatRequest, "messages">[] = Array.from({ length: CALLS }, (_, index) => JSON.parse(bodyOf(index)));
const tape: Tape = {
  version: 1,
  calls: prompts.map(({ messages }, index) => ({
    index,
    lane: "solver",
    request: { messages },
    response: { content: "42", toolCalls: [], finishReason: "stop", model: "m" },
  })),
};
const rounds: InProcessRound[] = [];
for (let round = 0; round <= Number(process.argv[2]); round++) {
  const [from, before] = [performance.now(), process.cpuUsage()];
  const player = createPlayer({ tape });
  for (const { messages } of prompts) await player.model.complete({ messages }, { agent: "solver" });
  const [seconds, { user, system }] = [(performance.now() - from) / 1000, process.cpuUsage(before)];
  if (player.levels.L0 !== CALLS || player.unplayed() !== 0) throw new Error("not every call was replayed at L0");
  rounds.push({ callsPerSecond: CALLS / seconds, cpuMicros: (user + system) / CALLS });
}
process.send?.(rounds);
process.disconnect?.();
