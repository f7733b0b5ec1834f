import { RootstepError } from "../../src/errors.ts";

/** What differs from run to run without meaning anything: clocks, random ids, temporary files. */
type MaskKind = "id" | "uuid" | "hex" | "time" | "epoch" | "temp" | "number" | "float" | "duration";

interface Mask {
  readonly kind: MaskKind;
  readonly pattern: string;
  /** True for names of things: a later mention means the same thing, so it is bound to its recording and rewritten. */
  readonly names: boolean;
}

const WORD_ENDS = "(?![0-9A-Za-z])";

/**
 * In the order they are tried at a place. Narrow on purpose: "5 minutes" or "12 apples" is what a task is about, and
 * must never be masked; "3.417 s" or "812 ms" is a stopwatch.
 */
const MASKS: readonly Mask[] = [
  {
    kind: "uuid",
    names: true,
    pattern: `(?:[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}|[0-9a-f]{32})${WORD_ENDS}`,
  },
  { kind: "hex", names: true, pattern: `0x[0-9a-fA-F]{4,}${WORD_ENDS}` },
  {
    kind: "time",
    names: false,
    pattern: `(?<!-)\\d{4}-\\d{2}-\\d{2}(?:[T ]\\d{2}:\\d{2}(?::\\d{2}(?:\\.\\d+)?)?(?:Z|[+-]\\d{2}:?\\d{2})?)?(?![0-9-])|\\d{2}:\\d{2}:\\d{2}(?:\\.\\d+)?${WORD_ENDS}`,
  },
  // 2014 to 2033 in seconds, milli-, micro- or nanoseconds.
  {
    kind: "epoch",
    names: false,
    pattern: `(?<!\\.)1[4-9]\\d{8}(?:\\d{3}|\\d{6}|\\d{9})?(?:\\.\\d+)?${WORD_ENDS}`,
  },
  // Python's tempfile and mkdtemp's six characters, of which one at least is no lower-case letter.
  {
    kind: "temp",
    names: true,
    pattern:
      "tmp[a-z0-9_]{8}(?![a-z0-9_])|(?<=/tmp/)[\\w.-]*?[-_.](?=[A-Za-z]{0,5}[0-9A-Z])[A-Za-z0-9]{6}(?![A-Za-z0-9])",
  },
  {
    kind: "duration",
    names: false,
    pattern: `(?:\\d+\\.\\d{2,} ?(?:s|secs?|seconds)|\\d+(?:\\.\\d+)? ?(?:ms|µs|us|ns))${WORD_ENDS}`,
  },
  { kind: "float", names: false, pattern: `(?<!\\.)\\d+\\.\\d{10,}${WORD_ENDS}` },
  { kind: "number", names: true, pattern: `(?<!\\.)\\d{12,}${WORD_ENDS}` },
];

const OWN_ID = { kind: "id", names: true } as const;

const alternatives = (masks: readonly Mask[]): string =>
  masks.map(({ kind, pattern }) => `(?<${kind}>${pattern})`).join("|");

/** All but temporary files begin with a hex digit that begins a word: nearly every place of a text is passed over at once. */
const ANY_MASK = new RegExp(
  `(?<![0-9A-Za-z])(?=[0-9a-fA-F])(?:${alternatives(MASKS.filter(({ kind }) => kind !== "temp"))})|(?<=/)(?:${alternatives(MASKS.filter(({ kind }) => kind === "temp"))})`,
  "gu",
);

export interface MaskedToken {
  readonly kind: MaskKind;
  readonly value: string;
  readonly names: boolean;
}

export interface MaskedText {
  /** The text with `<uuid1>`, `<time1>`, … in place; equal values have equal numbers, so that links between ids stay. */
  readonly text: string;
  /** What was masked, in order of appearance. */
  readonly tokens: readonly MaskedToken[];
}

/**
 * The masks with a system's own ids before them.
 * @param patterns regular expressions (flags `mu`) whose whole match is an id; what tells it apart stands in lookarounds:
 * `(?<=^Agent )\\w{4}(?= as a )`
 * @throws RootstepError USAGE for one that is no regular expression
 */
export function withOwnIds(patterns: readonly string[]): RegExp {
  if (patterns.length === 0) return ANY_MASK;
  try {
    return new RegExp(`(?<id>${patterns.map((pattern) => `(?:${pattern})`).join("|")})|${ANY_MASK.source}`, "gmu");
  } catch (cause) {
    throw new RootstepError("USAGE", {
      what: `an id pattern is no regular expression: ${cause instanceof Error ? cause.message : String(cause)}`,
      where: patterns.join(" "),
      cause,
    });
  }
}

/**
 * Masks what differs from run to run (L1). Takes JSON text as well: an escaped line break ends a word there.
 * @param pattern the masks, with a system's own from `withOwnIds`
 */
export function maskText(text: string, pattern: RegExp = ANY_MASK): MaskedText {
  const tokens: MaskedToken[] = [];
  const numbers = new Map<string, number>();
  const counts = new Map<MaskKind, number>();
  const masked = text.replace(/\\[nrt]/gu, "\n").replace(pattern, (value: string, ...rest: unknown[]) => {
    const groups = rest.at(-1);
    const mask = isCaptured(groups, "id") ? OWN_ID : MASKS.find(({ kind }) => isCaptured(groups, kind));
    if (mask === undefined) return value;
    tokens.push({ kind: mask.kind, value, names: mask.names });
    // A clock moves on between two mentions in one run and not in another: only names keep their identity.
    if (!mask.names) return `<${mask.kind}>`;
    const known = numbers.get(value);
    const number = known ?? (counts.get(mask.kind) ?? 0) + 1;
    if (known === undefined) {
      counts.set(mask.kind, number);
      numbers.set(value, number);
    }
    return `<${mask.kind}${number}>`;
  });
  return { text: masked, tokens };
}

function isCaptured(groups: unknown, kind: MaskKind): boolean {
  return typeof groups === "object" && groups !== null && kind in groups && Reflect.get(groups, kind) !== undefined;
}
