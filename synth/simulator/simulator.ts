import { z } from "zod";
import { sha256 } from "../../src/checksum.ts";
import { RootstepError } from "../../src/errors.ts";
import type { ChatModel, ChatRequest, ChatResponse } from "../../src/models/chat-model.ts";
import { type RandomStream, stream } from "../../src/random.ts";
import { requestHash } from "../tape/tape.ts";
import type { Calculation } from "../tasks/calculations.ts";
import { cleanLog, rightUtterance, type Utterance, write } from "./continuation.ts";
import type { ComposedReading, Reply, TurnReading } from "./dialects/dialect.ts";
import { readRequest } from "./dialects/registry.ts";
import { readLog } from "./log-state.ts";
import { type MistakeKind, makeMistake } from "./mistakes.ts";

export const simulatorConfigSchema = z.strictObject({
  provider: z.literal("simulator").default("simulator"),
  regime: z
    .enum(["slip", "systematic"])
    .default("slip")
    .describe("slip: rerun, the agent errs again in 3 of 10 runs; systematic: it errs the same way in 9 of 10"),
  hardRate: z
    .number()
    .min(0)
    .max(1)
    .default(1)
    .describe("share of tasks that have a step at which an agent tends to err"),
  noise: z.number().min(0).max(1).default(0.1).describe("probability that a run meets any other error"),
  analyzerErrorRate: z.number().min(0).max(1).default(0).describe("probability that a correction is itself wrong"),
  seed: z.number().int().default(0).describe("decides which tasks are hard, where and how"),
});
export type SimulatorConfig = z.infer<typeof simulatorConfigSchema>;

/** Probability of erring at the hard step each time it is reached. */
const ERROR_AGAIN = { slip: 0.3, systematic: 0.9 } as const;

/** What the simulator did on one request: its own ledger, which search and training never read. */
export interface SimulatorDecision {
  readonly requestHash: string;
  readonly problem: string;
  /** Position in the log of the run. */
  readonly step: number;
  readonly agent: string;
  readonly erred: MistakeKind | null;
}

export interface SimulatorOptions {
  readonly config: SimulatorConfig;
  /** The right calculations of a problem, by its text. */
  readonly solve: (problem: string) => readonly Calculation[] | undefined;
  readonly onDecision?: (decision: SimulatorDecision) => void;
}

/**
 * A model that plays the agents of rootstep's shipped systems and its analyzer, fallibly: it reads its prompt (in the
 * dialect of the system's framework), computes the right continuation from the context it is shown, and errs at seeded
 * rates. Answers depend on the request and its `seed` alone, so reruns differ by seed and each is reproducible. The test
 * bench of label accuracy, where the true decisive step is known.
 *
 * @throws RootstepError SIMULATOR_CONFUSED for prompts of other systems and problems it does not know
 */
export function simulatedModel({ config, solve, onDecision }: SimulatorOptions): ChatModel {
  const hardSteps = new Map<string, number | undefined>();
  const hardStepOf = (problem: string, length: number): number | undefined => {
    const key = `${length} ${problem}`;
    if (!hardSteps.has(key)) {
      const task = stream(config.seed, "hard", problem);
      hardSteps.set(key, task.chance(config.hardRate) ? task.int(length) : undefined);
    }
    return hardSteps.get(key);
  };
  const id = `simulator:${config.regime}-hard${config.hardRate}-noise${config.noise}-seed${config.seed}`;

  const answer = (request: ChatRequest): Reply => {
    const reading = readRequest(request);
    if (reading?.kind === "direct") return reading.reply;
    const calculations = reading === undefined ? undefined : solve(reading.problem);
    if (reading === undefined || calculations === undefined) {
      throw new RootstepError("SIMULATOR_CONFUSED", {
        what:
          reading === undefined
            ? "the prompt is not one of rootstep's own"
            : "the problem is not one the simulator knows",
        where: (request.messages.at(-1)?.content ?? "").slice(0, 120),
      });
    }
    const draw = request.seed ?? requestHash(request);
    switch (reading.kind) {
      case "turn":
        return takeTurn(reading, calculations, draw, request);
      case "composed":
        return reading.compose(calculations, (right, step) =>
          say(right, { ...reading, step, calculations }, draw, request),
        );
      case "correction":
        return { content: correct(reading.step, reading.problem, calculations, draw) };
    }
  };

  const takeTurn = (
    reading: TurnReading,
    calculations: readonly Calculation[],
    draw: number | string,
    request: ChatRequest,
  ): Reply => {
    const right = rightUtterance(reading.agent, calculations, readLog(reading.log), reading.final);
    if (right === undefined) return reading.dress("I cannot tell."); // a garbled log: what a model would say, and the run fails
    const at = { ...reading, step: reading.log.length, calculations };
    return reading.dress(write(say(right, at, draw, request)));
  };

  /** The utterance, or a mistake in its place. */
  const say = (
    right: Utterance,
    at: Pick<TurnReading | ComposedReading, "agent" | "problem" | "length"> & {
      readonly step: number;
      readonly calculations: readonly Calculation[];
    },
    draw: number | string,
    request: ChatRequest,
  ): Utterance => {
    const { problem, step, agent } = at;
    const length = at.length(at.calculations);
    const isHard = hardStepOf(problem, length) === step;
    const error = errorAt(config, { problem, length, step, isHard }, draw);
    const mistake = error === undefined ? undefined : makeMistake(right, error);
    onDecision?.({ requestHash: requestHash(request), problem, step, agent, erred: mistake?.kind ?? null });
    return mistake?.wrong ?? right;
  };

  const correct = (
    step: number,
    problem: string,
    calculations: readonly Calculation[],
    draw: number | string,
  ): string => {
    const action = cleanLog(calculations)[step]?.content ?? "";
    const random = stream(config.seed, "analyzer", problem, step, draw);
    const wrong = random.chance(config.analyzerErrorRate);
    const shown = wrong
      ? action.replace(/(\d+)(?!.*\d)/u, (digits) => String(Number(digits) + 1 + random.int(3)))
      : action;
    return JSON.stringify({ action: shown, reason: "recomputed from the problem" });
  };

  return {
    id,
    async complete(request): Promise<ChatResponse> {
      const { content, toolCalls = [] } = answer(request);
      const promptLength = request.messages.reduce((sum, message) => sum + message.content.length, 0);
      return {
        content,
        toolCalls: toolCalls.map(({ name, arguments: values }, index) => ({
          id: `call_${sha256(JSON.stringify([requestHash(request), request.seed, index])).slice(0, 24)}`,
          name,
          arguments: JSON.stringify(values),
        })),
        finishReason: toolCalls.length === 0 ? "stop" : "tool_calls",
        // Four characters a token: a rule of thumb, good enough to make plans and budgets visible.
        usage: { promptTokens: Math.ceil(promptLength / 4), completionTokens: Math.ceil(content.length / 4) },
        model: id,
      };
    },
  };
}

/** The stream to draw a mistake from if the agent errs at this step of this draw, else undefined. */
export function errorAt(
  config: SimulatorConfig,
  at: { readonly problem: string; readonly length: number; readonly step: number; readonly isHard: boolean },
  draw: number | string,
): RandomStream | undefined {
  const chance = stream(config.seed, "err", draw, at.step);
  if (at.isHard && chance.chance(ERROR_AGAIN[config.regime])) {
    // A systematic error is the same misunderstanding each time; a slip is a new one.
    return config.regime === "systematic" ? stream(config.seed, "misunderstanding", at.problem) : chance;
  }
  const slipRate = 1 - (1 - config.noise) ** (1 / at.length);
  return chance.chance(slipRate) ? chance : undefined;
}
