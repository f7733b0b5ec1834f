import { flood, median, paced, percentile, requestsOf } from "./replay-load.ts";
import type { Server } from "./replay-servers.ts";
import { bodyOf } from "./replay-tape.ts";

/** A server in the comparison. */
export interface Contender {
  readonly name: string;
  readonly server: Server;
  /** A request that fails is counted; of the others none may. */
  readonly isPeer?: boolean | undefined;
  /** It answers only what it was asked before: it gets the first so many bodies over and over. */
  readonly warmedWith?: number | undefined;
}

/** Which bodies are sent: ranges that do not meet, since a replay has each answer once. */
export interface Bodies {
  readonly warmUp: number;
  readonly perFlood: number;
  readonly perPaced: number;
  readonly rounds: number;
}

const CONNECTIONS = 16;
const PER_SECOND = 100;
const FLOOD_MS = 1500;

export function bodiesNeeded({ warmUp, perFlood, perPaced, rounds }: Bodies): number {
  return warmUp + rounds * (perFlood + perPaced);
}

export interface Row {
  readonly name: string;
  /** Closed loop: requests answered in all rounds, and per second in each. */
  readonly requests: number;
  readonly rates: readonly number[];
  /** Rate over the bare server's in the same round. */
  readonly shares: readonly number[];
  /** User and system time per request, by round; absent where it cannot be read. */
  readonly cpuMicros: readonly number[];
  /** Open loop, milliseconds over all rounds. */
  readonly latencies: readonly number[];
  /** p50 and p99 of each round less those of the bare server in the same round. */
  readonly addedP50: readonly number[];
  readonly addedP99: readonly number[];
  readonly lateness: readonly number[];
  /** Requests of both loads that were not answered with 200. */
  readonly failed: number;
}

/**
 * Loads every contender in turn, round after round, the first one another in each round, so that the machine's noise hits
 * all alike. The first contender is what the others are compared with.
 */
export async function measureRounds(
  contenders: readonly Contender[],
  bodies: Bodies,
  say: (text: string) => void,
): Promise<Row[]> {
  const rows = contenders.map(({ name }) => ({
    name,
    requests: 0,
    failed: 0,
    rates: [] as number[],
    shares: [] as number[],
    cpuMicros: [] as number[],
    latencies: [] as number[],
    p50: [] as number[],
    p99: [] as number[],
    lateness: [] as number[],
  }));
  const requests = ({ server, warmedWith }: Contender, from: number, count: number): Buffer[] =>
    requestsOf(
      server.target,
      Array.from({ length: count }, (_, at) => bodyOf(warmedWith === undefined ? from + at : at % warmedWith)),
    );
  const [bare] = contenders;
  const upstreamAsked = async (): Promise<number | undefined> => (await bare?.server.usage())?.served;
  /** Has it asked what it will be asked again, right before: its cache is small, and other requests push answers out. */
  const warm = async ({ server, warmedWith = 0 }: Contender, some: readonly Buffer[]): Promise<void> => {
    await flood(server.target.port, some.slice(0, warmedWith), 4, Number.POSITIVE_INFINITY);
  };
  const refuseMisses = async ({ name, warmedWith }: Contender, asked: number | undefined): Promise<void> => {
    if (warmedWith !== undefined && (await upstreamAsked()) !== asked)
      throw new Error(`${name} asked the upstream: it did not answer from what it was asked before`);
  };
  for (const contender of contenders) {
    say(`warming up: ${contender.name}`);
    const some = requests(contender, 0, bodies.warmUp);
    await warm(contender, some);
    await flood(contender.server.target.port, some, CONNECTIONS, FLOOD_MS);
  }
  for (let round = 0; round < bodies.rounds; round++) {
    say(`round ${round + 1} of ${bodies.rounds}: as many requests as it can`);
    for (const at of turned(contenders.length, round)) {
      const [contender, row] = [contenders[at], rows[at]];
      if (contender === undefined || row === undefined) continue;
      const { port } = contender.server.target;
      const some = requests(contender, bodies.warmUp + round * bodies.perFlood, bodies.perFlood);
      await warm(contender, some);
      const asked = await upstreamAsked();
      const before = await contender.server.usage();
      const { requests: answered, failures, seconds } = await flood(port, some, CONNECTIONS, FLOOD_MS);
      const after = await contender.server.usage();
      await refuseMisses(contender, asked);
      row.failed += countedFailures(contender, failures);
      row.requests += answered;
      row.rates.push(answered / seconds);
      if (before.cpuMicros !== undefined && after.cpuMicros !== undefined)
        row.cpuMicros.push((after.cpuMicros - before.cpuMicros) / answered);
    }
    say(`round ${round + 1} of ${bodies.rounds}: ${PER_SECOND} requests per second`);
    for (const at of turned(contenders.length, round)) {
      const [contender, row] = [contenders[at], rows[at]];
      if (contender === undefined || row === undefined) continue;
      const from = bodies.warmUp + bodies.rounds * bodies.perFlood + round * bodies.perPaced;
      const some = requests(contender, from, bodies.perPaced);
      await warm(contender, some);
      const asked = await upstreamAsked();
      const { latencies, lateness, failures } = await paced(contender.server.target.port, some, PER_SECOND);
      await refuseMisses(contender, asked);
      row.failed += countedFailures(contender, failures);
      row.latencies.push(...latencies);
      row.lateness.push(...lateness);
      row.p50.push(percentile(latencies, 0.5));
      row.p99.push(percentile(latencies, 0.99));
    }
  }
  const reference = rows[0];
  const less = (values: readonly number[], others: readonly number[] | undefined): number[] =>
    values.map((value, round) => value - (others?.[round] ?? Number.NaN));
  return rows.map(({ p50, p99, ...row }) => ({
    ...row,
    shares: row.rates.map((rate, round) => rate / (reference?.rates[round] ?? Number.NaN)),
    addedP50: less(p50, reference?.p50),
    addedP99: less(p99, reference?.p99),
  }));
}

function countedFailures({ name, isPeer }: Contender, failures: readonly string[]): number {
  if (isPeer !== true && failures.length > 0) throw new Error(`${name} answered ${failures[0]}`);
  return failures.length;
}

/** The positions from `by` on, and then those before it. */
function turned(length: number, by: number): number[] {
  return Array.from({ length }, (_, at) => (at + by) % length);
}

/** `median (lowest–highest)` */
export function spread(values: readonly number[], digits: number): string {
  if (values.length === 0) return "–";
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return `${median(values).toFixed(digits)} (${low.toFixed(digits)}–${high.toFixed(digits)})`;
}
