import { setTimeout as sleep } from "node:timers/promises";
import { type DeadLetter, type RunStatus, readRunStatus, type StageStatus } from "../../synth/ledger/read.ts";
import { openRunLedger } from "../../synth/synthesize.ts";
import { EXIT } from "../errors.ts";
import { textTable } from "../report/table.ts";
import { plainCommand, stringArgument } from "./command.ts";

const REFRESH_MS = 2000;

/** `synth status`: how far a run is, while it is going on or after; its dead letters, and their return to the queue. */
export const synthStatus = plainCommand({
  name: "synth status",
  describe: "how far a synth run is: units by state, rate, cost, workers; dead units with their reasons",
  arguments: [
    { name: "folder", describe: "run folder of synth run", type: "string", positional: true, required: true },
    { name: "dead", describe: "list the units that are not tried again, with their reasons", type: "boolean" },
    {
      name: "retry-dead",
      describe: "put dead units back into the queue; the next synth run tries them again",
      type: "boolean",
    },
    { name: "watch", describe: "print again every 2 s, until all is done or Ctrl-C", type: "boolean" },
  ],
  examples: ["synth status runs/gsm8k", "synth status runs/gsm8k --dead", "synth status runs/gsm8k --retry-dead"],
  async run(_, args, context) {
    const folder = stringArgument(args, "folder");
    if (args["retry-dead"] === true) {
      readRunStatus(folder); // a folder without a ledger is refused, not given one
      const ledger = openRunLedger(folder, context.now);
      try {
        const revived = ledger.revive();
        context.print({ revived }, `${revived} dead units are back in the queue: run synth run again`);
      } finally {
        ledger.close();
      }
      return EXIT.ok;
    }
    for (;;) {
      const status = readRunStatus(folder);
      if (args.dead === true) context.print(status.dead, renderDead(status.dead));
      else context.print(status, renderStatus(status));
      if (args.watch !== true || status.stages.every(isOver) || context.signal.aborted) return EXIT.ok;
      await sleep(REFRESH_MS, undefined, { signal: context.signal }).catch(() => undefined);
    }
  },
});

const isOver = ({ units, total }: StageStatus): boolean => units.done + units.dead === total;

export function renderStatus({ run, coordinator, stages, workers, dead }: RunStatus): string {
  const { host, pid, since, epoch } = coordinator;
  return [
    `run ${run}, last coordinated by process ${pid} on ${host} since ${since} (start ${epoch})`,
    textTable(
      "Units",
      ["stage", "done", "leased", "queued", "failed", "dead", "units/s", "left", "calls", "tokens", "cost"],
      stages.map(({ stage, units, total, perSecond, secondsLeft, cost, callsUnderWay }) => [
        stage,
        `${units.done} of ${total}`,
        String(units.leased),
        String(units.queued),
        String(units.failed),
        String(units.dead),
        perSecond === null ? "–" : perSecond.toPrecision(3),
        secondsLeft === null ? "unknown" : duration(secondsLeft),
        callsUnderWay === 0 ? String(cost.calls) : `${cost.calls} + ${callsUnderWay} kept`,
        String(cost.promptTokens + cost.completionTokens),
        cost.nanos === null ? "no prices" : priceCell(cost.nanos / 1e9),
      ]),
    ),
    ...(stages.some(({ callsUnderWay }) => callsUnderWay > 0)
      ? ["kept: calls of units that are not done; their answers are not paid for again"]
      : []),
    ...(workers.length === 0
      ? []
      : [
          textTable(
            "Workers seen",
            ["worker", "host", "process", "rootstep", "slots", "units done", "last seen"],
            workers.map(({ id, host: at, pid: process, version, slots, done, lastSeen }) => [
              id,
              at,
              String(process),
              version,
              String(slots),
              String(done),
              lastSeen,
            ]),
          ),
        ]),
    ...(dead.length === 0 ? [] : [`${dead.length} dead units: rootstep synth status DIR --dead`]),
  ].join("\n\n");
}

export function renderDead(dead: readonly DeadLetter[]): string {
  if (dead.length === 0) return "no dead units";
  return textTable(
    "Dead units",
    ["stage", "unit", "attempts", "error", "reason"],
    dead.map(({ stage, key, attempts, code, reason }) => [stage, key, String(attempts), code, reason]),
  );
}

/** Small sums keep three digits. */
const priceCell = (money: number): string =>
  money !== 0 && money < 0.01 ? String(Number(money.toPrecision(3))) : money.toFixed(4);

function duration(seconds: number): string {
  const whole = Math.ceil(seconds);
  if (whole < 60) return `${whole} s`;
  return whole < 3600 ? `${Math.ceil(whole / 60)} min` : `${(whole / 3600).toFixed(1)} h`;
}
