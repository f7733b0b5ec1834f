import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { EXIT } from "../errors.ts";
import { modelFromConfig } from "../models/resolve.ts";
import { optionalNumber, plainCommand } from "./command.ts";
import { redisArgument, requiredRedisUrl } from "./redis-argument.ts";

const DEFAULTS = { slots: 4, leaseSeconds: 30, limitSeconds: 6 * 3600, graceSeconds: 10 };

/** `worker`: works on the units of any run that is coordinated over a Redis, until Ctrl-C. */
export const worker = plainCommand({
  name: "worker",
  describe: "work on the units of synth runs coordinated over Redis; any number, on any host",
  arguments: [
    redisArgument("Redis that the runs are coordinated over"),
    { name: "concurrency", describe: `units at the same time [default: ${DEFAULTS.slots}]`, type: "number" },
    {
      name: "lease",
      describe: `seconds after which a silent worker counts as dead [default: ${DEFAULTS.leaseSeconds}]`,
      type: "number",
    },
    { name: "job-limit", describe: `seconds one unit may take [default: ${DEFAULTS.limitSeconds}]`, type: "number" },
    {
      name: "grace",
      describe: `seconds that units under way get to end after Ctrl-C; then they are given back [default: ${DEFAULTS.graceSeconds}]`,
      type: "number",
    },
  ],
  examples: [
    "worker --redis redis://127.0.0.1:6379",
    "worker --redis rediss://user:password@host:6380 --concurrency 16",
  ],
  async run(_, args, context) {
    const url = requiredRedisUrl(args, context);
    // Loaded here: no other command needs the queue's libraries.
    const { runWorker } = await import("../../synth/worker/run-worker.ts");
    const { unitExecutors } = await import("../../synth/worker/unit-executors.ts");
    const host = hostname();
    const slots = optionalNumber(args, "concurrency") ?? DEFAULTS.slots;
    const milliseconds = (name: string, fallback: number): number => 1000 * (optionalNumber(args, name) ?? fallback);
    const id = `${host}-${process.pid}-${randomUUID().slice(0, 8)}`;
    context.progress.note(`worker ${id} is ready for ${slots} units at a time; Ctrl-C drains and stops it`);
    const info = { id, host, pid: process.pid, version: context.version, slots };
    const tally = await runWorker({
      url,
      info,
      executors: (redis) =>
        unitExecutors(redis, {
          info,
          openModel: (config, budget) => modelFromConfig(config, context.env, { budget }),
        }),
      leaseMs: milliseconds("lease", DEFAULTS.leaseSeconds),
      limitMs: milliseconds("job-limit", DEFAULTS.limitSeconds),
      graceMs: milliseconds("grace", DEFAULTS.graceSeconds),
      signal: context.signal,
      note: (line) => context.progress.note(line),
    });
    const { done, failed, givenBack } = tally;
    context.print(tally, `${done} units done, ${failed} failed, ${givenBack} given back`);
    return EXIT.interrupted;
  },
});
