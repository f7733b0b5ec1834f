import { EXIT, RootstepError } from "../errors.ts";

/**
 * Ctrl-C once stops and saves what is done; twice stops at once.
 *
 * @returns a signal that long work polls, and `dispose` to take the handlers away again
 */
export function interruptSignal(
  say: (line: string) => void,
  target: NodeJS.Process = process,
): { readonly signal: AbortSignal; dispose(): void } {
  const controller = new AbortController();
  const onSignal = (): void => {
    if (controller.signal.aborted) target.exit(EXIT.interrupted);
    controller.abort(new RootstepError("INTERRUPTED", { what: "stopped by request" }));
    say("stopping: saving what is done; press Ctrl-C again to stop at once");
  };
  target.on("SIGINT", onSignal);
  target.on("SIGTERM", onSignal);
  return {
    signal: controller.signal,
    dispose() {
      target.off("SIGINT", onSignal);
      target.off("SIGTERM", onSignal);
    },
  };
}
