import { RootstepError } from "../../../src/errors.ts";
import type { ChatModel, ChatRequest } from "../../../src/models/chat-model.ts";
import { type RandomStream, stream } from "../../../src/random.ts";
import type { Task } from "../../../src/trajectory/schema.ts";
import { requestHash } from "../../tape/tape.ts";
import { rephrasing } from "../rephrase.ts";
import { errorAt, type SimulatorConfig } from "../simulator.ts";
import type { Player, Turn } from "./player.ts";
import { readTeamPrompt } from "./team-prompt.ts";

export interface FallibleOptions {
  readonly config: SimulatorConfig;
  readonly player: Player;
  /** The tasks that it can play. */
  readonly tasks: readonly Task[];
  /** Told of every turn, erred or not: the player's own ledger, which search and training never read. */
  readonly onTurn?: (turn: { readonly step: number; readonly erred: boolean }) => void;
}

/**
 * A model that plays the agents and the analyzer by a player's rules, fallibly, in the regimes of the simulator: per task
 * one hard step at which it tends to err, and noise elsewhere. Answers depend on the request and its `seed` alone.
 *
 * @throws RootstepError (from `complete`) SIMULATOR_CONFUSED for prompts of other systems and tasks it does not know
 */
export function fallibleModel({ config, player, tasks, onTurn }: FallibleOptions): ChatModel {
  const id = `simulator:${config.regime}-hard${config.hardRate}-noise${config.noise}-seed${config.seed}`;

  const say = (turn: Turn, draw: number | string): string => {
    const step = turn.log.length;
    const right = player.right(turn);
    const error = mistakeAt(turn, step, draw);
    const said = error === undefined ? right : (player.wrong(turn, right, error) ?? right);
    onTurn?.({ step, erred: said !== right });
    return said;
  };

  const mistakeAt = ({ task }: Turn, step: number, draw: number | string): RandomStream | undefined => {
    const length = player.length(task);
    const draws = stream(config.seed, "hard", task.id);
    const isHard = draws.chance(config.hardRate) && draws.int(length) === step;
    return errorAt(config, { problem: task.id, length, step, isHard }, draw);
  };

  const correct = (turn: Turn, draw: number | string): string => {
    const random = stream(config.seed, "analyzer", turn.task.id, turn.log.length, draw);
    const right = player.correction(turn);
    const action = random.chance(config.analyzerErrorRate) ? (player.wrong(turn, right, random) ?? right) : right;
    return JSON.stringify({ action, reason: "worked out from the problem" });
  };

  const answer = (request: ChatRequest): string => {
    const rephrased = rephrasing(request);
    if (rephrased !== undefined) return rephrased;
    const prompt = readTeamPrompt(request, tasks);
    if (prompt === undefined) {
      throw new RootstepError("SIMULATOR_CONFUSED", {
        what: "the prompt is not one of rootstep's own on a task the simulator knows",
        where: (request.messages.at(-1)?.content ?? "").slice(0, 120),
      });
    }
    const draw = request.seed ?? requestHash(request);
    return prompt.kind === "turn" ? say(prompt, draw) : correct(prompt, draw);
  };

  return {
    id,
    async complete(request) {
      const content = answer(request);
      const promptLength = request.messages.reduce((sum, message) => sum + message.content.length, 0);
      return {
        content,
        toolCalls: [],
        finishReason: "stop",
        // Four characters a token, as in the simulator.
        usage: { promptTokens: Math.ceil(promptLength / 4), completionTokens: Math.ceil(content.length / 4) },
        model: id,
      };
    },
  };
}
