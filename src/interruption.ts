import { RootstepError } from "./errors.ts";

/** What an aborted signal means: the RootstepError given as its reason, or else INTERRUPTED. */
export function interruption(signal: AbortSignal, where?: string): RootstepError {
  if (signal.reason instanceof RootstepError) return signal.reason;
  return new RootstepError("INTERRUPTED", { what: "stopped by request", where, cause: signal.reason });
}

/** @throws RootstepError INTERRUPTED where the signal is aborted already */
export function throwIfInterrupted(signal: AbortSignal | undefined, where?: string): void {
  if (signal?.aborted) throw interruption(signal, where);
}

/** Who waits for each signal: one listener of Node's per signal, however many calls of a run share it. */
const waitingFor = new WeakMap<AbortSignal, Set<() => void>>();

/** Calls the listener once when the signal aborts (at once where it has). @returns what takes the listener off again */
export function onInterruption(signal: AbortSignal | undefined, listener: () => void): () => void {
  if (signal === undefined) return () => {};
  if (signal.aborted) {
    listener();
    return () => {};
  }
  const waiting = waitingFor.get(signal) ?? listen(signal);
  // Its own function, so that one listener given twice is called and taken off twice.
  const entry = (): void => listener();
  waiting.add(entry);
  return () => void waiting.delete(entry);
}

function listen(signal: AbortSignal): Set<() => void> {
  const waiting = new Set<() => void>();
  waitingFor.set(signal, waiting);
  signal.addEventListener("abort", () => {
    for (const entry of waiting) entry();
    waiting.clear();
  });
  return waiting;
}

/** The promise, or INTERRUPTED as soon as the signal aborts; what the promise does afterwards is nobody's concern. */
export function untilInterrupted<T>(promise: Promise<T>, signal: AbortSignal | undefined, where?: string): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise<T>((resolve, reject) => {
    const stopListening = onInterruption(signal, () => reject(interruption(signal, where)));
    promise.then(
      (value) => {
        stopListening();
        resolve(value);
      },
      (error: unknown) => {
        stopListening();
        reject(error);
      },
    );
  });
}
