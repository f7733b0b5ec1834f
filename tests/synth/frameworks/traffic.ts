import { rmSync } from "node:fs";
import { dirname } from "node:path";
import { shippedPath } from "../../../src/package-root.ts";
import { preloadEnvironment } from "../../../synth/determinism/preload.ts";
import { type RecordReport, recordProgram } from "../../../synth/proxy/record-program.ts";
import { type ReplayProgramOptions, type ReplayReport, replayProgram } from "../../../synth/proxy/replay-program.ts";
import { loadTape, type TapeFolder } from "../../../synth/tape/loader.ts";
import { freshFolder, TOKEN } from "../proxy-setting.ts";

export interface RecordedTraffic {
  readonly report: RecordReport;
  readonly tape: TapeFolder;
  again(changes?: Partial<ReplayProgramOptions>): Promise<ReplayReport>;
}

let runs = 0;

/** Records one of the programs in `traffic/`; `again` replays it. `clean` takes the tapes away. */
export function traffic(): {
  record(program: string, args: readonly string[], upstream: string, preload?: boolean): Promise<RecordedTraffic>;
  /** A folder for another tape. */
  folder(): string;
  clean(): void;
} {
  const folders: string[] = [];
  const folder = (): string => {
    const made = freshFolder("tape");
    folders.push(dirname(made));
    return made;
  };
  return {
    folder,
    async record(program, args, upstream, preload = false) {
      const run = `traffic-${process.pid}-${runs++}`;
      const env = { PATH: process.env.PATH };
      const settings = {
        command: ["node", shippedPath("tests", "synth", "frameworks", "traffic", program), ...args],
        env: preload ? { ...env, ...preloadEnvironment({ seed: run, at: "2025-06-01T12:00:00.000Z" }, env) } : env,
        cwd: process.cwd(),
        timeLimitMs: 60_000,
        token: TOKEN,
        version: "0.0.0",
        now: () => new Date(0),
      };
      const out = folder();
      const report = await recordProgram({ ...settings, out, run, upstream: new URL(upstream) });
      const tape = loadTape(out);
      return { report, tape, again: (changes = {}) => replayProgram({ ...settings, tape, ...changes }) };
    },
    clean() {
      for (const made of folders.splice(0)) rmSync(made, { recursive: true, force: true });
    },
  };
}

/** The most calls that were under way at one time. */
export function mostAtOnce({ calls }: TapeFolder): number {
  return Math.max(
    ...calls.map(
      ({ askedAt }) =>
        calls.filter((other) => other.askedAt <= askedAt && askedAt < other.askedAt + other.tookMs).length,
    ),
  );
}
