import type { RootstepError } from "../../src/errors.ts";
import { type Bindings, createBindings } from "./bindings.ts";

/**
 * What the replays of one tape share. A tape holds calls of models and calls of tools, each with a replay of its own; an
 * id bound in one is bound in the other, nothing is live until the prefix of both is done, and both stop together.
 */
export interface SharedPrefix {
  readonly bindings: Bindings;
  /** Adds what has to be done before anything is live. */
  addPart(isDone: () => boolean): void;
  /** True once every recording before the cut was asked for. */
  readonly isDone: boolean;
  /** Calls `proceed` once when the prefix is done or the replay is stopped. @returns takes it back */
  wait(proceed: () => void): () => void;
  /** To be called when a recording was asked for: lets those who wait go on if it was the last. */
  advance(): void;
  /** The first error counts; whoever waits goes on and finds it. @returns the first */
  stop(error: RootstepError): RootstepError;
  readonly stopped: RootstepError | undefined;
}

/** @param onStopped told once, of the first error */
export function createSharedPrefix(onStopped?: (error: RootstepError) => void): SharedPrefix {
  const parts: (() => boolean)[] = [];
  const waiting = new Set<() => void>();
  const bindings = createBindings();
  let stopped: RootstepError | undefined;
  const isDone = (): boolean => parts.every((part) => part());
  const release = (): void => {
    const all = [...waiting];
    waiting.clear();
    for (const proceed of all) proceed();
  };
  return {
    bindings,
    addPart: (part) => void parts.push(part),
    get isDone() {
      return isDone();
    },
    wait(proceed) {
      waiting.add(proceed);
      return () => void waiting.delete(proceed);
    },
    advance() {
      if (waiting.size > 0 && isDone()) release();
    },
    stop(error) {
      if (stopped === undefined) {
        stopped = error;
        onStopped?.(error);
      }
      release();
      return stopped;
    },
    get stopped() {
      return stopped;
    },
  };
}
