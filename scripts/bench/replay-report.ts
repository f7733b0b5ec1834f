import { textTable } from "../../src/report/table.ts";
import type { Behaviour } from "./replay-behaviour.ts";
import type { InProcessRound } from "./replay-in-process.ts";
import { median, percentile } from "./replay-load.ts";
import type { MemoryCourse, MemoryPoint } from "./replay-memory.ts";
import { type Bodies, type Row, spread } from "./replay-rounds.ts";

export interface Figures {
  readonly machine: {
    readonly cpu: string;
    readonly cores: number;
    readonly memoryGb: number;
    readonly system: string;
    readonly node: string;
    /** One-minute averages: what else ran, and what the benchmark itself adds. */
    readonly loadBefore: number;
    readonly loadAfter: number;
  };
  readonly calls: number;
  readonly bodies: Bodies;
  /** The first round hashes the tape. */
  readonly inProcess: readonly InProcessRound[];
  readonly loading: readonly { readonly ms: number; readonly cpuMs: number }[];
  readonly rows: readonly Row[];
  readonly memory: MemoryCourse;
  readonly behaviour: readonly Behaviour[];
  readonly skipped: readonly { readonly name: string; readonly why: string }[];
  readonly seconds: number;
}

export function printFigures(figures: Figures): void {
  const { machine, rows, inProcess, loading, memory, bodies } = figures;
  console.log(
    `${machine.cpu}, ${machine.cores} cores, ${machine.memoryGb.toFixed(0)} GB, ${machine.system}, node ${machine.node}; load ${machine.loadBefore.toFixed(1)} before, ${machine.loadAfter.toFixed(1)} after; ${figures.seconds.toFixed(0)} s`,
  );
  for (const { name, why } of figures.skipped) console.log(`skipped: ${name}: ${why}`);
  const bareCpu = median(rows[0]?.cpuMicros ?? []);
  console.log(
    textTable(
      `\nAs many requests as it can, 16 connections, bodies of 1 kB; median (lowest–highest) of ${bodies.rounds} rounds in turn`,
      ["server", "n", "failed", "requests/s", "% of bare", "CPU µs/request", "bare CPU / its CPU (%)"],
      rows.map((row) => [
        row.name,
        String(row.requests),
        String(row.failed),
        spread(row.rates, 0),
        spread(
          row.shares.map((share) => 100 * share),
          1,
        ),
        spread(row.cpuMicros, 0),
        row.cpuMicros.length === 0 ? "–" : ((100 * bareCpu) / median(row.cpuMicros)).toFixed(1),
      ]),
    ),
  );
  console.log(
    textTable(
      "\n100 requests/s, open loop, milliseconds from when a request was due; added: over bare in the same round",
      ["server", "n", "p50", "p99", "added p50", "added p99", "generator late p99"],
      rows.map((row) => [
        row.name,
        String(row.latencies.length),
        percentile(row.latencies, 0.5).toFixed(2),
        percentile(row.latencies, 0.99).toFixed(2),
        spread(row.addedP50, 2),
        spread(row.addedP99, 2),
        percentile(row.lateness, 0.99).toFixed(2),
      ]),
    ),
  );
  console.log(
    textTable(
      "\nMemory in MB, resident / heap after a collection",
      ["calls", ...memory.record.filter(shown).map(({ calls }) => String(calls))],
      (["record", "replay"] as const).map((kind) => [
        `rootstep ${kind}`,
        ...memory[kind].filter(shown).map(({ rssMb, heapMb }) => `${rssMb.toFixed(0)} / ${heapMb.toFixed(1)}`),
      ]),
    ),
  );
  const repeated = inProcess.slice(1);
  console.log(
    `\nin process: ${spread(
      repeated.map(({ callsPerSecond }) => callsPerSecond),
      0,
    )} calls/s (first round, which hashes the tape: ${(inProcess[0]?.callsPerSecond ?? Number.NaN).toFixed(0)}), ${spread(
      repeated.map(({ cpuMicros }) => cpuMicros),
      1,
    )} µs of CPU each`,
  );
  console.log(
    `opening a tape of ${figures.calls} distinct calls: ${spread(
      loading.map(({ ms }) => ms),
      0,
    )} ms, ${spread(
      loading.map(({ cpuMs }) => cpuMs),
      0,
    )} ms of CPU, n=${loading.length}`,
  );
  console.log(
    textTable(
      "\nBehaviour on replay",
      ["tool", "pieces of a stream", "a recorded 429 is answered with", "after the file lost its last third"],
      figures.behaviour.map(({ name, stream, status, truncated }) => [name, stream, status, truncated]),
    ),
  );
  console.log(textTable("\nAims", ["figure", "aim", "measured", "reached"], aims(figures)));
}

const shown = ({ calls }: MemoryPoint, at: number, all: readonly MemoryPoint[]): boolean =>
  at === 0 || calls === 50_000 || at === all.length - 1;

function aims({ rows, inProcess, loading, memory }: Figures): string[][] {
  const row = (name: string): Row | undefined => rows.find((candidate) => candidate.name === name);
  const [replay, record] = [row("rootstep replay"), row("rootstep record")];
  const ratio = (other: Row | undefined): number =>
    median((replay?.rates ?? []).map((rate, round) => rate / (other?.rates[round] ?? Number.NaN)));
  const aim = (name: string, text: string, value: number, digits: number, isReached: boolean): string[] => [
    name,
    text,
    Number.isNaN(value) ? "–" : value.toFixed(digits),
    Number.isNaN(value) ? "not measured" : isReached ? "yes" : "no",
  ];
  const speed = median(inProcess.slice(1).map(({ callsPerSecond }) => callsPerSecond));
  const share = 100 * median(replay?.shares ?? []);
  const [replayP99, recordP50] = [median(replay?.addedP99 ?? []), median(record?.addedP50 ?? [])];
  const [overTracefork, overLitellm] = [ratio(row("tracefork replay")), ratio(row("LiteLLM cache"))];
  const load = median(loading.map(({ ms }) => ms));
  return [
    aim("in-process replay, calls/s", "≥ 20000", speed, 0, speed >= 20_000),
    aim("proxy replay, % of bare", "≥ 70", share, 1, share >= 70),
    aim("replay at 100/s, added p99, ms", "< 1", replayP99, 2, replayP99 < 1),
    aim("recording at 100/s, added p50, ms", "< 1", recordP50, 2, recordP50 < 1),
    aim("replay over tracefork's proxy", "≥ 4", overTracefork, 1, overTracefork >= 4),
    aim("replay over LiteLLM's cache", "≥ 50", overLitellm, 1, overLitellm >= 50),
    aim("opening 45,000 calls, ms", "< 2000", load, 0, load < 2000),
    ...(["record", "replay"] as const).map((kind) => {
      const grown = growth(memory[kind]);
      return aim(`resident memory after 10,000 calls, ${kind}, % more`, "flat (< 10)", grown, 1, grown < 10);
    }),
  ];
}

/** Of the resident memory, from the first 10,000 calls, by which everything is warm, to the last. */
function growth(points: readonly MemoryPoint[]): number {
  const [first, last] = [points[0], points.at(-1)];
  if (first === undefined || last === undefined || first === last) return Number.NaN;
  return (100 * (last.rssMb - first.rssMb)) / first.rssMb;
}
