import { type Bindings, createBindings } from "./bindings.ts";
import { type MaskedText, maskText, withOwnIds } from "./masks.ts";
import { similarity } from "./similarity.ts";

/** L0 the same request · L1 the same but for masked ids and clocks · L2 similar, at the same position of its lane. */
export type MatchLevel = "L0" | "L1" | "L2";

/** One recorded request, as far as matching goes. */
export interface Recording {
  /** Position among the calls of the tape. */
  readonly index: number;
  readonly lane: string;
  /** sha256 of the request's bytes as they came: equal bytes need no parsing. */
  readonly raw: string;
  /** sha256 of its canonical JSON, with the endpoint it went to. */
  readonly key: string;
  /** Its canonical JSON, read when it is needed. */
  text(): string;
}

/** A request that looks for its recording; what costs time is worked out when it is needed. */
export interface Asked {
  readonly lane: string;
  readonly raw: string;
  key(): string;
  text(): string;
}

export interface MatchOptions {
  /** Match at L1 where L0 finds nothing. Default true. */
  readonly masks?: boolean | undefined;
  /** Ids of the program's own making, as regular expressions (see `withOwnIds`): masked and bound at L1 beside the known ones. */
  readonly idPatterns?: readonly string[] | undefined;
  /** Match at L2 from this similarity (0–1) on. Without it never: a changed question must not get an old answer. */
  readonly similarityFloor?: number | undefined;
}

export interface MatcherOptions extends MatchOptions {
  /** Ids bound elsewhere in the same replay; default: none yet. */
  readonly bindings?: Bindings | undefined;
}

export interface Match<R> {
  readonly recording: R;
  readonly level: MatchLevel;
}

/** Finds the recording of each request, every recording once. */
export interface Matcher<R extends Recording> {
  /** Takes the recording of this request; among equal ones the first of its lane. Undefined if there is none. */
  take(asked: Asked): Match<R> | undefined;
  /** Undoes a `take`: the program dropped the answer and will ask again. */
  giveBack(recording: R): void;
  /** The first recording of the lane (or of the tape) that nobody has asked for. */
  next(lane?: string): R | undefined;
  /** Recordings not taken. */
  readonly left: number;
  readonly bindings: Bindings;
}

/** Recordings in order, with a mark before which all are taken: a thousand equal calls stay quick. */
interface Queue<R> {
  readonly items: R[];
  first: number;
}

interface Lane<R> {
  readonly all: Queue<R>;
  readonly byRaw: ReadonlyMap<string, Queue<R>>;
  /** By key; made when bytes first find nothing. */
  byKey: ReadonlyMap<string, Queue<R>> | undefined;
  /** By masked text; made when L0 first finds nothing. */
  byMask: ReadonlyMap<string, Queue<R>> | undefined;
}

export function createMatcher<R extends Recording>(
  recordings: readonly R[],
  { masks = true, idPatterns = [], similarityFloor, bindings = createBindings() }: MatcherOptions = {},
): Matcher<R> {
  const lanes = new Map<string, Lane<R>>();
  const everything: Queue<R> = { items: [...recordings], first: 0 };
  const taken = new Set<number>();
  const masked = new Map<number, MaskedText>();
  const ids = withOwnIds(idPatterns);
  for (const [name, all] of queuesBy(recordings, ({ lane }) => lane)) {
    const byRaw = queuesBy(all.items, ({ raw }) => raw);
    lanes.set(name, { all, byRaw, byKey: undefined, byMask: undefined });
  }

  const isFree = ({ index }: R): boolean => !taken.has(index);
  const firstFree = (queue: Queue<R> | undefined): R | undefined => {
    if (queue === undefined) return undefined;
    for (; queue.first < queue.items.length; queue.first++) {
      const recording = queue.items[queue.first];
      if (recording !== undefined && isFree(recording)) return recording;
    }
    return undefined;
  };
  const maskOf = (recording: R): MaskedText => {
    const known = masked.get(recording.index) ?? maskText(recording.text(), ids);
    masked.set(recording.index, known);
    return known;
  };

  const fits = (recording: R, asked: MaskedText): boolean =>
    isFree(recording) && bindings.bind(maskOf(recording).tokens, asked.tokens);

  const atL1 = (lane: Lane<R>, asked: MaskedText): R | undefined => {
    lane.byMask ??= queuesBy(lane.all.items, (recording) => maskOf(recording).text);
    // Two workers with ids of their own send the same masked text: the one whose ids fit what is bound already.
    const alike = lane.byMask.get(asked.text)?.items.find((recording) => fits(recording, asked));
    const rewrite = bindings.rewriter();
    if (alike !== undefined || rewrite === undefined) return alike;
    // An id that no mask knows where it stands now (an answer quotes it), but that was bound elsewhere.
    return lane.all.items.find(
      (recording) =>
        isFree(recording) &&
        maskOf(recording).tokens.length === asked.tokens.length &&
        maskText(rewrite(recording.text()), ids).text === asked.text &&
        fits(recording, asked),
    );
  };

  const find = (asked: Asked): Match<R> | undefined => {
    const lane = lanes.get(asked.lane);
    if (lane === undefined) return undefined;
    const bytes = firstFree(lane.byRaw.get(asked.raw));
    if (bytes !== undefined) return { recording: bytes, level: "L0" };
    lane.byKey ??= queuesBy(lane.all.items, ({ key }) => key);
    const same = firstFree(lane.byKey.get(asked.key()));
    if (same !== undefined) return { recording: same, level: "L0" };
    const next = firstFree(lane.all);
    if (next === undefined || (!masks && similarityFloor === undefined)) return undefined;
    const askedMask = maskText(asked.text(), ids);
    const alike = masks ? atL1(lane, askedMask) : undefined;
    if (alike !== undefined) return { recording: alike, level: "L1" };
    if (similarityFloor === undefined) return undefined;
    return similarity(maskOf(next).text, askedMask.text) >= similarityFloor
      ? { recording: next, level: "L2" }
      : undefined;
  };

  return {
    take(asked) {
      const match = find(asked);
      if (match !== undefined) taken.add(match.recording.index);
      return match;
    },
    giveBack(recording) {
      taken.delete(recording.index);
      const lane = lanes.get(recording.lane);
      const queues = [everything, lane?.all, lane?.byRaw.get(recording.raw), lane?.byKey?.get(recording.key)];
      for (const queue of queues) if (queue !== undefined) queue.first = 0;
    },
    next(name) {
      return firstFree(name === undefined ? everything : lanes.get(name)?.all);
    },
    get left() {
      return recordings.length - taken.size;
    },
    bindings,
  };
}

function queuesBy<R>(items: readonly R[], keyOf: (item: R) => string): Map<string, Queue<R>> {
  const queues = new Map<string, Queue<R>>();
  for (const item of items) {
    const key = keyOf(item);
    const queue = queues.get(key);
    if (queue === undefined) queues.set(key, { items: [item], first: 0 });
    else queue.items.push(item);
  }
  return queues;
}
