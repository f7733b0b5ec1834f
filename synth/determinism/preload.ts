import { delimiter } from "node:path";
import { pathToFileURL } from "node:url";
import { shippedPath } from "../../src/package-root.ts";

/** The same in a recording and its replays. */
export interface PreloadOptions {
  /** Names the streams of ids and random numbers. */
  readonly seed: string;
  /** The time at which the program's wall clocks stand still, in ISO form. */
  readonly at: string;
}

/**
 * The environment that makes Python and Node programs, and those they start, repeat themselves: wall clocks stand still;
 * uuid1, uuid4, `random`, `Math.random` and `randomUUID` are seeded; Python's temporary names are counted. What measures
 * time (monotonic clocks, timers, asyncio) goes on. Not covered: os.urandom, secrets, randomBytes, numpy, and the order
 * in which threads draw.
 *
 * @param env what the program would be given without it: its PYTHONPATH and NODE_OPTIONS are kept
 */
export function preloadEnvironment(
  { seed, at }: PreloadOptions,
  env: Readonly<Record<string, string | undefined>>,
): Readonly<Record<string, string>> {
  const node = `--import=${pathToFileURL(shippedPath("synth", "determinism", "node", "preload.mjs"))}`;
  const given = (value: string | undefined): value is string => value !== undefined && value !== "";
  return {
    PYTHONHASHSEED: "0",
    PYTHONPATH: [shippedPath("synth", "determinism", "python"), env.PYTHONPATH].filter(given).join(delimiter),
    NODE_OPTIONS: [node, env.NODE_OPTIONS].filter(given).join(" "),
    ROOTSTEP_PRELOAD: JSON.stringify({ seed, at: Date.parse(at) }),
  };
}
