import type { AnyCommand } from "./command.ts";

/** A word of the command line and what it can do; its code is loaded when it is asked for. */
export interface Verb {
  /** The first word: `synth`, `list`, … */
  readonly word: string;
  /** Its commands, in the order of --help. */
  readonly load: () => Promise<readonly AnyCommand[]>;
}

/** Every verb, in the order of --help. */
export const verbs: readonly Verb[] = [
  {
    word: "synth",
    load: async () => {
      const [run, plan, status, prior, exported] = await Promise.all([
        import("./synth.ts"),
        import("./synth-plan.ts"),
        import("./synth-status.ts"),
        import("./synth-prior.ts"),
        import("./synth-export.ts"),
      ]);
      return [run.synthRun, plan.synthPlan, status.synthStatus, prior.synthPrior, exported.synthExport];
    },
  },
  { word: "worker", load: async () => [(await import("./worker.ts")).worker] },
  { word: "simulate", load: async () => [(await import("./simulate.ts")).simulate] },
  { word: "install", load: async () => [(await import("./install.ts")).install] },
  { word: "record", load: async () => [(await import("./record.ts")).record] },
  { word: "replay", load: async () => [(await import("./replay.ts")).replay] },
  { word: "mcp-tape", load: async () => [(await import("./mcp-tape.ts")).mcpTape] },
  {
    word: "train",
    load: async () => {
      const [run, sft, status, evaluation, exportVerl, launch] = await Promise.all([
        import("./train.ts"),
        import("./train-sft.ts"),
        import("./train-status.ts"),
        import("./train-eval.ts"),
        import("./train-export-verl.ts"),
        import("./train-launch.ts"),
      ]);
      return [
        run.trainRunCommand,
        sft.trainSftCommand,
        status.trainStatus,
        evaluation.trainEval,
        exportVerl.trainExportVerl,
        launch.trainLaunch,
      ];
    },
  },
  {
    word: "eval",
    load: async () => {
      const [evaluate, compare] = await Promise.all([import("./eval.ts"), import("./eval-compare.ts")]);
      return [evaluate.evalRun, evaluate.evalScore, compare.evalCompare];
    },
  },
  {
    word: "data",
    load: async () => {
      const [data, stats, steps] = await Promise.all([
        import("./data.ts"),
        import("./data-stats.ts"),
        import("./data-steps.ts"),
      ]);
      return [data.dataAudit, data.dataValidate, stats.dataStatsCommand, steps.dataSteps];
    },
  },
  { word: "list", load: async () => [(await import("./list.ts")).list] },
  { word: "demo", load: async () => [(await import("./demo.ts")).demo] },
];

/** The commands that a line can mean: those of the verb it begins with, or all of them, for --help and suggestions. */
export async function commandsFor(argv: readonly string[]): Promise<readonly AnyCommand[]> {
  const named = verbs.filter(({ word }) => word === argv[0]);
  const loaded = await Promise.all((named.length > 0 ? named : verbs).map((verb) => verb.load()));
  return loaded.flat();
}
