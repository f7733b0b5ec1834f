import { loadTape } from "../../synth/tape/loader.ts";
import { EXIT, RootstepError } from "../errors.ts";
import { writeTracerTraj } from "../formats/tracertraj/write.ts";
import type { Trajectory } from "../trajectory/schema.ts";
import { plainCommand, stringArgument } from "./command.ts";
import { renderSteps, STEP_POLICY, tapeTrajectory } from "./tape-steps.ts";

/** `data steps`: tapes as trajectories. */
export const dataSteps = plainCommand({
  name: "data steps",
  describe: "make the runs on tapes one TracerTraj file: steps, agents, tool calls with their results",
  arguments: [
    { name: "tapes", describe: "tape folders", type: "array", positional: true },
    { name: "out", describe: "the file: .jsonl or .jsonl.gz", type: "string", required: true },
    STEP_POLICY,
  ],
  examples: [
    "data steps tapes/* --out runs.jsonl",
    "data steps tapes/one --step-policy per-agent-turn --out one.jsonl",
  ],
  async run(_, args, context) {
    const folders = Array.isArray(args.tapes) ? args.tapes.map(String) : [];
    if (folders.length === 0) throw new RootstepError("USAGE", { what: "no tape is named" });
    const made: Trajectory[] = [];
    for (const folder of folders) {
      const tape = loadTape(folder);
      try {
        made.push(await tapeTrajectory(tape, args));
      } finally {
        tape.bodies.close();
      }
    }
    const out = stringArgument(args, "out");
    await writeTracerTraj(made, out);
    const counts = made.map(({ id, steps, stepPolicy }) => ({ id, steps: steps.length, stepPolicy }));
    context.print(
      { out, trajectories: counts },
      [...made.map(renderSteps), `${made.length} runs in ${out}`].join("\n\n"),
    );
    return EXIT.ok;
  },
});
