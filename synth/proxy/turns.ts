import { asRootstepError, type RootstepError } from "../../src/errors.ts";
import type { Asked, Recording } from "../tape/matcher.ts";
import type { SharedPrefix } from "../tape/prefix.ts";
import type { Decision, Replay } from "../tape/replay.ts";
import type { AnswerPort } from "./answer-port.ts";

/** How long a request from after the cut waits for the calls before it, in milliseconds. */
const HOLD_MS = 30_000;

export type FromTape<R> = Extract<Decision<R>, { recording: R }>;

/** A request of a replay and how it is answered once that is decided. */
export interface Turn<R> {
  readonly asked: Asked;
  readonly port: Pick<AnswerPort, "refuse" | "onceClosed" | "isGone">;
  tape(decision: FromTape<R>): void;
  /** @throws RootstepError which stops the replay */
  live(): void;
}

export interface TurnOptions<R extends Recording> {
  readonly replay: Replay<R>;
  readonly shared: SharedPrefix;
  readonly holdMs?: number | undefined;
  /** Says more of an error where the tape knows more. */
  readonly explained?: ((error: RootstepError, asked: Asked) => RootstepError) | undefined;
}

/**
 * Takes each request of a replay in its turn: what the tape answers at once, what belongs after the cut when everything
 * before it was asked for. The first request without an answer stops the replay; it and all that follow are refused.
 *
 * @returns takes a turn; `given` is a decision made before
 */
export function createTurns<R extends Recording>(
  options: TurnOptions<R>,
): (turn: Turn<R>, given?: FromTape<R>) => void {
  const { replay, shared, holdMs = HOLD_MS, explained = (error) => error } = options;

  const stop = (thrown: unknown, { asked, port }: Turn<R>): void => {
    const { code, message } = shared.stop(explained(asRootstepError(thrown), asked));
    port.refuse(400, code, message);
  };

  const take = (turn: Turn<R>, given?: FromTape<R>): void => {
    if (shared.stopped !== undefined) {
      turn.port.refuse(400, shared.stopped.code, shared.stopped.message);
      return;
    }
    try {
      const decision = given ?? replay.decide(turn.asked);
      if (decision.kind === "held") hold(turn, decision.error);
      else if (decision.kind === "live") turn.live();
      else {
        turn.tape(decision);
        shared.advance();
      }
    } catch (thrown) {
      stop(thrown, turn);
    }
  };

  const hold = (turn: Turn<R>, error: RootstepError): void => {
    const leave = shared.wait(() => {
      clearTimeout(limit);
      if (!turn.port.isGone) take(turn);
    });
    const limit = setTimeout(() => {
      leave();
      if (!turn.port.isGone) stop(error, turn);
    }, holdMs);
    turn.port.onceClosed(() => {
      clearTimeout(limit); // a client that left keeps nobody waiting
      leave();
    });
  };

  return take;
}
