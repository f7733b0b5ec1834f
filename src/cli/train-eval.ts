import { z } from "zod";
import { serversSchema } from "../../trainer/engine-config.ts";
import { openTracerPolicy } from "../../trainer/open-tracer.ts";
import { EXIT } from "../errors.ts";
import { evalConfigSchema } from "../evaluation/config.ts";
import { createBudget } from "../models/budget.ts";
import { command, optionalString, stringArgument } from "./command.ts";
import { runOne } from "./eval.ts";
import { dataLoader } from "./eval-folder.ts";

/** Settings of an evaluation that say nothing of the method: it is always the tracer. */
const trainEvalSchema = evalConfigSchema
  .pick({ data: true, withReference: true, limit: true, seed: true, concurrency: true })
  .extend({
    served: z
      .string()
      .min(1)
      .optional()
      .describe("name under which vLLM (servers.rollouts) serves the checkpoint: an adapter's or a model's"),
    servers: serversSchema,
  });
type TrainEvalConfig = z.infer<typeof trainEvalSchema>;

/** `train eval`: a checkpoint over Who&When or other labelled runs, scored beside the floors like any method. */
export const trainEval = command<TrainEvalConfig>({
  name: "train eval",
  describe: "evaluate a checkpoint on Who&When: in process, on the training server that holds it, or on vLLM by name",
  schema: trainEvalSchema,
  arguments: [
    {
      name: "checkpoint",
      describe: "a training run (its newest checkpoint), or one checkpoint's folder",
      type: "string",
      positional: true,
      required: true,
    },
    { name: "out", describe: "run folder [default: runs/eval-tracer-SUBSET]; running again goes on", type: "string" },
  ],
  examples: [
    "train eval runs/tracer --with-reference --data.files dataset/test.jsonl",
    "train eval runs/qwen --servers.engine http://127.0.0.1:8001 --data.subset hand-crafted",
    "train eval runs/qwen/checkpoints/step-000040 --servers.rollouts http://127.0.0.1:8000 --served tracer-40",
  ],
  async run({ served, servers, ...settings }, args, context) {
    const checkpoint = stringArgument(args, "checkpoint");
    const config = evalConfigSchema.parse({ ...settings, method: "tracer", checkpoint });
    const data = await dataLoader()(config);
    const subset = config.data.files === undefined ? config.data.subset : "files";
    const out = optionalString(args, "out") ?? `runs/eval-tracer-${subset}`;
    const { env: environment, signal } = context;
    const { document, text, stoppedBy } = await runOne(config, data, out, createBudget({}), context, (source) =>
      openTracerPolicy(source, { servers, served, environment, signal }),
    );
    context.print(document, text);
    if (stoppedBy !== undefined) throw stoppedBy;
    return Object.keys(document.scores.errors).length === 0 ? EXIT.ok : EXIT.failed;
  },
});
