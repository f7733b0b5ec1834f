/** One of a call's time limits: how it is called, and how long it is in milliseconds. */
export interface TimeLimit {
  readonly name: string;
  readonly ms: number;
}

/** The time limits of one call: one for the whole of it, and one for the phase it is in. */
export interface CallTimer {
  /** Begins a phase; the one before is over. */
  phase(limit: TimeLimit): void;
  /** No phase is running: only the whole call's limit holds. */
  rest(): void;
  stop(): void;
}

/**
 * Watches both limits, from the first phase on, with a single timer of Node's. Phases begin with every piece of an answer; a
 * timer that is due before the new limit is left as it is and looks again when it fires.
 */
export function startCallTimer(whole: TimeLimit, expired: (limit: TimeLimit) => void): CallTimer {
  const wholeEnds = performance.now() + whole.ms;
  let phase: TimeLimit | undefined;
  let phaseEnds = Number.POSITIVE_INFINITY;
  let timer: NodeJS.Timeout | undefined;
  let due = Number.POSITIVE_INFINITY;

  const watch = (now: number): void => {
    const next = Math.min(wholeEnds, phaseEnds);
    if (due <= next) return;
    clearTimeout(timer);
    due = next;
    timer = setTimeout(look, Math.max(1, Math.ceil(next - now)));
  };
  function look(): void {
    due = Number.POSITIVE_INFINITY;
    const now = performance.now();
    if (phase !== undefined && now >= phaseEnds) expired(phase);
    else if (now >= wholeEnds) expired(whole);
    else watch(now);
  }

  return {
    phase(limit) {
      const now = performance.now();
      phase = limit;
      phaseEnds = now + limit.ms;
      watch(now);
    },
    rest() {
      phase = undefined;
      phaseEnds = Number.POSITIVE_INFINITY;
    },
    stop: () => clearTimeout(timer),
  };
}
