import cliProgress from "cli-progress";

/** Where long work tells how far it is. One bar per stage. */
export interface Progress {
  /** Begins a stage of `total` units; `done` of them are already there when a run is resumed. */
  stage(name: string, total: number, done?: number): Stage;
  /** A line for the reader, above any bar. */
  note(line: string): void;
}

export interface Stage {
  advance(units?: number, detail?: string): void;
  finish(detail?: string): void;
}

export interface ProgressOptions {
  readonly output: NodeJS.WriteStream;
  readonly now: () => number;
  /** Forces the plain form; by default a bar is drawn on a terminal only. */
  readonly plain?: boolean;
}

/** A bar on a terminal; elsewhere a line now and then: every ten percent, or fifteen seconds, but not each second. */
export function createProgress(options: ProgressOptions): Progress {
  const { output } = options;
  return options.plain === true || !output.isTTY ? plainProgress(options) : barProgress(output);
}

/** Says nothing: for `--json` and for library use. */
export const silentProgress: Progress = {
  stage: () => ({ advance() {}, finish() {} }),
  note() {},
};

function barProgress(output: NodeJS.WriteStream): Progress {
  return {
    stage(name, total, done = 0) {
      const bar = new cliProgress.SingleBar(
        {
          stream: output,
          format: `${name.padEnd(24)} {bar} {value}/{total} {eta_formatted} {detail}`,
          barsize: 24,
          hideCursor: null,
          clearOnComplete: false,
          emptyOnZero: true,
        },
        cliProgress.Presets.shades_classic,
      );
      bar.start(total, done, { detail: "" });
      return {
        advance: (units = 1, detail = "") => bar.increment(units, { detail }),
        finish: (detail) => {
          if (detail !== undefined) bar.update({ detail });
          bar.stop();
        },
      };
    },
    // Clears the bar's line; the bar draws itself again below with its next unit.
    note: (line) => void output.write(`\r\u001b[K${line}\n`),
  };
}

function plainProgress({ output, now }: ProgressOptions): Progress {
  const say = (line: string): void => void output.write(`${line}\n`);
  return {
    stage(name, total, done = 0) {
      const begun = now();
      let value = done;
      let saidAt = begun;
      let saidTenth = total === 0 ? 10 : Math.floor((10 * done) / total);
      say(done > 0 ? `${name}: going on at ${done}/${total}` : `${name}: 0/${total}`);
      return {
        advance(units = 1, detail = "") {
          value += units;
          const tenth = total === 0 ? 10 : Math.floor((10 * value) / total);
          const silence = now() - saidAt;
          if (silence < 1_000 || (tenth === saidTenth && silence < 15_000)) return;
          saidTenth = tenth;
          saidAt = now();
          if (value < total) say(`${name}: ${value}/${total} ${detail}`.trimEnd());
        },
        finish(detail = "") {
          const took = `${((now() - begun) / 1000).toFixed(1)} s`;
          const ended = value < total ? `stopped at ${value}/${total} after` : `${value}/${total} done in`;
          say(`${name}: ${ended} ${took} ${detail}`.trimEnd());
        },
      };
    },
    note: say,
  };
}
