import { type TrainConfig, trainConfigSchema } from "../../trainer/config.ts";
import { exportVerl } from "../../trainer/verl/export.ts";
import { EXIT } from "../errors.ts";
import { DEFAULT_LOG_BUDGET } from "../methods/tracer/tracer.ts";
import { command, optionalNumber, optionalString, stringArgument } from "./command.ts";
import { TRAINING_DATA, trainingTrajectories } from "./training-data.ts";

/** `train export-verl`: the same run as a job for verl. */
export const trainExportVerl = command<TrainConfig>({
  name: "train export-verl",
  describe: "write the run as a verl job: Parquet prompts, compute_score, configuration without KL, clip schedule",
  schema: trainConfigSchema,
  arguments: [
    TRAINING_DATA,
    { name: "out", describe: "folder for the job's files", type: "string", required: true },
    { name: "model", describe: "model that verl trains [default: Qwen/Qwen3-8B]", type: "string" },
    { name: "log-budget", describe: `characters of log in a prompt [default: ${DEFAULT_LOG_BUDGET}]`, type: "number" },
    { name: "held-out-share", describe: "share of task groups in test.parquet [default: 0.1]", type: "number" },
  ],
  examples: ["train export-verl --config configs/qwen3-8b-h100x8.yaml --data runs/gsm8k/dataset --out jobs/verl"],
  async run(config, args, context) {
    const out = stringArgument(args, "out");
    const written = exportVerl({
      config,
      trajectories: await trainingTrajectories(args),
      heldOutShare: optionalNumber(args, "held-out-share") ?? 0.1,
      logBudget: optionalNumber(args, "log-budget") ?? DEFAULT_LOG_BUDGET,
      model: optionalString(args, "model") ?? "Qwen/Qwen3-8B",
      out,
    });
    const refused = Object.entries(written.refused).map(
      ([reason, count]) => `${count} records cannot teach: ${reason}`,
    );
    context.print(
      written,
      [
        `${written.train} prompts to train on, ${written.heldOut} held out, in ${out}`,
        ...refused,
        `start it there: ./run.sh`,
      ].join("\n"),
    );
    return EXIT.ok;
  },
});
