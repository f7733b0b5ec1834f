import { dataHash } from "../../trainer/dataset.ts";
import { openEngine } from "../../trainer/open-engine.ts";
import { type SftConfig, sftConfigSchema, trainSft } from "../../trainer/sft.ts";
import { EXIT } from "../errors.ts";
import { textTable } from "../report/table.ts";
import { openRunFolder } from "../runs/run-folder.ts";
import { command, optionalNumber, stringArgument } from "./command.ts";
import { buildTrainingData, noteRefused, TRAINING_DATA, trainingTrajectories } from "./training-data.ts";

/** `train sft`: cross-entropy on labelled runs, a warm start for GRPO; resumable. */
export const trainSftCommand = command<SftConfig>({
  name: "train sft",
  describe: "warm-start a tracer by cross-entropy on labelled runs",
  schema: sftConfigSchema,
  arguments: [
    TRAINING_DATA,
    { name: "out", describe: "run folder; running again goes on", type: "string", required: true },
    { name: "threads", describe: "threads of the embedded engine [default: 2]", type: "number" },
  ],
  plans: true,
  examples: ["train sft --steps 200 --data runs/chain/dataset --out runs/warm", "train run --from runs/warm …"],
  async run(config, args, context) {
    const data = await buildTrainingData(config, await trainingTrajectories(args));
    if (context.dryRun) {
      const plan = { steps: config.steps, examples: data.examples.length, refused: data.refused.length };
      const passes = (config.steps * config.batchSize) / Math.max(1, data.examples.length);
      const rows = [
        ["optimiser steps", String(config.steps)],
        ["examples (used / refused)", `${plan.examples} / ${plan.refused}`],
        ["passes over the examples", passes.toFixed(1)],
      ];
      context.print(plan, textTable("Plan of train sft; nothing was run", ["", ""], rows));
      return EXIT.ok;
    }
    noteRefused(data, context.progress);
    const out = stringArgument(args, "out");
    const { checkpointEvery: _every, keepCheckpoints: _keep, servers: _servers, ...settings } = config;
    const folder = openRunFolder({
      path: out,
      kind: "train-sft",
      version: context.version,
      settings,
      inputs: { examples: dataHash(data.examples, []) },
      now: context.now,
    });
    try {
      const opened = await openEngine({
        config: { engine: config.engine, sampling: { from: "engine" }, servers: config.servers },
        environment: context.env,
        folder: folder.path,
        threads: optionalNumber(args, "threads") ?? 2,
        signal: context.signal,
      });
      const bar = context.progress.stage("sft", config.steps);
      try {
        const { step } = await trainSft({
          config,
          engine: opened.engine,
          examples: data.examples,
          target: (trajectory, label) => opened.engine.codec.encodeCompletion(trajectory, label),
          folder: folder.path,
          signal: context.signal,
          onMetric: ({ tokenLoss }) => bar.advance(1, `loss ${tokenLoss.toFixed(4)}`),
        });
        context.print({ step }, `${step} of ${config.steps} steps done; go on with: rootstep train run --from ${out}`);
      } finally {
        bar.finish();
        await opened.close();
      }
    } finally {
      folder.release();
    }
    return EXIT.ok;
  },
});
