import { appendFileSync } from "node:fs";
import { z } from "zod";
import { knowledgeOf } from "../../synth/simulator/knowledge.ts";
import { serveSimulator } from "../../synth/simulator/server.ts";
import { simulatedModel, simulatorConfigSchema } from "../../synth/simulator/simulator.ts";
import { taskSetById } from "../../synth/tasks/registry.ts";
import { EXIT } from "../errors.ts";
import { command, optionalString } from "./command.ts";

const simulateSchema = z.strictObject({
  port: z.number().int().min(0).max(65535).default(0).describe("loopback port; 0 picks a free one"),
  tasks: z
    .strictObject({
      set: z.string().default("gsm8k").describe("task set whose problems the simulator knows"),
      limit: z.number().int().positive().default(2000).describe("number of tasks"),
      seed: z.number().int().default(1).describe("seed of generated task sets"),
    })
    .prefault({}),
  simulator: simulatorConfigSchema.omit({ provider: true }).prefault({}),
});

/** `simulate`: the fallible simulator behind an OpenAI-compatible API, until Ctrl-C. */
export const simulate = command<z.infer<typeof simulateSchema>>({
  name: "simulate",
  describe: "serve the fallible simulator as an OpenAI-compatible server on loopback",
  schema: simulateSchema,
  arguments: [{ name: "ledger", describe: "JSONL file for what the simulator did on each request", type: "string" }],
  examples: ["simulate --port 8080 --simulator.regime systematic"],
  async run(config, args, context) {
    const { set, limit, seed } = config.tasks;
    const tasks = await taskSetById(set).load({ seed, limit });
    const ledger = optionalString(args, "ledger");
    const model = simulatedModel({
      config: { provider: "simulator", ...config.simulator },
      solve: knowledgeOf(tasks),
      ...(ledger === undefined
        ? {}
        : { onDecision: (decision) => appendFileSync(ledger, `${JSON.stringify(decision)}\n`) }),
    });
    const server = await serveSimulator({ model, port: config.port, now: context.now });
    context.print(
      { url: server.url, model: model.id, tasks: tasks.length },
      `${model.id} knows ${tasks.length} tasks of ${set} and answers at ${server.url}; Ctrl-C stops it`,
    );
    await new Promise<void>((resolve) => context.signal.addEventListener("abort", () => resolve(), { once: true }));
    await server.close();
    return EXIT.ok;
  },
});
