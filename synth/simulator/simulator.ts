import { z } from "zod";
import { RootstepError } from "../../src/errors.ts";
import type { ChatModel, ChatRequest, ChatResponse } from "../../src/models/chat-model.ts";
import { type RandomStream, stream } from "../../src/random.ts";
import { requestHash } from "../tape/tape.ts";
import type { Calculation } from "../tasks/calculations.ts";
import { cleanLog, rightUtterance, write } from "./continuation.ts";
import { readLog } from "./log-state.ts";
import { type MistakeKind, makeMistake } from "./mistakes.ts";
import { type Asked, readPrompt } from "./prompt.ts";

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
 * A model that plays rootstep's own agents and analyzer, fallibly: it reads its prompt, computes the right continuation
 * from the context it is shown, and errs at seeded rates. Answers depend on the request and its `seed` alone, so reruns
 * differ by seed and each is reproducible. The test bench of label accuracy, where the true decisive step is known.
 *
 * @throws RootstepError SIMULATOR_CONFUSED for prompts that are not rootstep's own
 */
export function simulatedModel({ config, solve, onDecision }: SimulatorOptions): ChatModel {
  const hardSteps = new Map<string, number | undefined>();
  const hardStepOf = (problem: string, length: number): number | undefined => {
    if (!hardSteps.has(problem)) {
      const task = stream(config.seed, "hard", problem);
      hardSteps.set(problem, task.chance(config.hardRate) ? task.int(length) : undefined);
    }
    return hardSteps.get(problem);
  };
  const id = `simulator:${config.regime}-hard${config.hardRate}-noise${config.noise}-seed${config.seed}`;

  const answer = (request: ChatRequest): string => {
    const asked = readPrompt(request);
    const calculations = asked === undefined ? undefined : solve(asked.problem);
    if (asked === undefined || calculations === undefined) {
      throw new RootstepError("SIMULATOR_CONFUSED", {
        what:
          asked === undefined
            ? "the prompt is not one of rootstep's own"
            : "the problem is not one the simulator knows",
        where: (request.messages.at(-1)?.content ?? "").slice(0, 120),
      });
    }
    const draw = request.seed ?? requestHash(request);
    return asked.kind === "turn"
      ? takeTurn(asked, calculations, draw, request)
      : correct(asked.step, asked.problem, calculations, draw);
  };

  const takeTurn = (
    asked: Asked & { kind: "turn" },
    calculations: readonly Calculation[],
    draw: number | string,
    request: ChatRequest,
  ): string => {
    const step = asked.log.length;
    const right = rightUtterance(asked.agent, calculations, readLog(asked.log), asked.final);
    if (right === undefined) return "I cannot tell."; // a garbled log: what a model would say, and the run fails
    const length = lengthOf(calculations);
    const isHard = hardStepOf(asked.problem, length) === step;
    const error = errorAt(config, { problem: asked.problem, length, step, isHard }, draw);
    const mistake = error === undefined ? undefined : makeMistake(right, error);
    if (onDecision !== undefined) {
      const erred = mistake?.kind ?? null;
      onDecision({ requestHash: requestHash(request), problem: asked.problem, step, agent: asked.agent, erred });
    }
    return write(mistake?.wrong ?? right);
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
      const content = answer(request);
      const promptLength = request.messages.reduce((sum, message) => sum + message.content.length, 0);
      return {
        content,
        toolCalls: [],
        finishReason: "stop",
        // Four characters a token: a rule of thumb, good enough to make plans and budgets visible.
        usage: { promptTokens: Math.ceil(promptLength / 4), completionTokens: Math.ceil(content.length / 4) },
        model: id,
      };
    },
  };
}

/** Steps of a clean run: two per calculation, a check after every second but the last, the final check. */
export function lengthOf(calculations: readonly Calculation[]): number {
  return 2 * calculations.length + Math.floor((calculations.length - 1) / 2) + 1;
}

/** The stream to draw a mistake from if the agent errs at this step of this draw, else undefined. */
function errorAt(
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
