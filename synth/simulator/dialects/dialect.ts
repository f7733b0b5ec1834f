import type { ChatRequest } from "../../../src/models/chat-model.ts";
import type { Calculation } from "../../tasks/calculations.ts";
import type { Utterance } from "../continuation.ts";
import type { LogLine } from "../log-state.ts";

export type Role = "planner" | "solver" | "verifier";

/** What the simulator says, in the form the framework wants: text, calls of the tools it was offered, or both. */
export interface Reply {
  readonly content: string;
  readonly toolCalls?: readonly { readonly name: string; readonly arguments: Readonly<Record<string, unknown>> }[];
}

/** One role says its next line: the simulator's brain decides which, right or wrong. */
export interface TurnReading {
  readonly kind: "turn";
  readonly agent: Role;
  readonly problem: string;
  /** What the agent is shown of the team's work; its length is the position of the turn in the run. */
  readonly log: readonly LogLine[];
  /** The verifier is to state the final answer. */
  readonly final: boolean;
  /** Turns of a clean run in this team's layout. */
  length(calculations: readonly Calculation[]): number;
  /** The line in the framework's form. */
  dress(line: string): Reply;
}

/** More than one line at once (a whole plan, a task's parts): the dialect composes it from the calculations. */
export interface ComposedReading {
  readonly kind: "composed";
  readonly agent: string;
  readonly problem: string;
  length(calculations: readonly Calculation[]): number;
  /** @param say what is said in the place of `right` as turn `step`: the same, or a mistake of the same form */
  compose(calculations: readonly Calculation[], say: (right: Utterance, step: number) => Utterance): Reply;
}

/** A move without arithmetic (whose turn it is, a hand-off, passing a result on, a rephrasing): it never errs. */
export interface DirectReading {
  readonly kind: "direct";
  readonly reply: Reply;
}

/** rootstep's own analyzer asks for a corrected action. */
export interface CorrectionReading {
  readonly kind: "correction";
  readonly problem: string;
  readonly step: number;
}

export type Reading = TurnReading | ComposedReading | DirectReading | CorrectionReading;

/** How one framework words its requests and wants its answers. */
export interface Dialect {
  readonly id: string;
  /** Undefined for a request that is not of this dialect: the next one is asked. Depends on the request alone. */
  read(request: ChatRequest): Reading | undefined;
}
