import type { ChatModel } from "../../../src/models/chat-model.ts";
import type { Calculation } from "../../tasks/calculations.ts";
import { type SimulatorConfig, simulatedModel } from "../simulator.ts";

/** Told of every turn of an agent, erred or not. */
export type OnTurn = (turn: { readonly step: number; readonly erred: boolean }) => void;

/** A simulated model for one system and its tasks, opened with any settings: the flawless one gives the truth. */
export type SimulatedModel = (config: SimulatorConfig, onTurn?: OnTurn) => ChatModel;

/** The simulator that plays calculation by calculation. */
export function byCalculations(solve: (problem: string) => readonly Calculation[] | undefined): SimulatedModel {
  return (config, onTurn) =>
    simulatedModel({
      config,
      solve,
      ...(onTurn === undefined ? {} : { onDecision: ({ step, erred }) => onTurn({ step, erred: erred !== null }) }),
    });
}
