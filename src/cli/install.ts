import { setTimeout } from "node:timers/promises";
import { installed, install as installSystem } from "../../synth/systems/installation.ts";
import type { ProgramSystem } from "../../synth/systems/program-system.ts";
import { programSystemById, programSystems } from "../../synth/systems/registry.ts";
import { asRootstepError, EXIT, RootstepError } from "../errors.ts";
import { throwIfInterrupted } from "../interruption.ts";

import { type Arguments, plainCommand } from "./command.ts";

/** `install NAME…`: the packages of systems that run as programs, in the user's cache folder. */
export const install = plainCommand({
  name: "install",
  describe: "install the packages of agent systems, each as its lock names them, in your cache folder",
  arguments: [
    { name: "system", describe: "names from `rootstep list systems`", type: "array", positional: true },
    { name: "all", describe: "every system but the heavy ones and those of your own checkout", type: "boolean" },
  ],
  examples: ["install langgraph autogen", "install --all"],
  async run(_, args, context) {
    const { env, signal } = context;
    const done: { readonly system: string; readonly folder: string; readonly was: "there" | "installed" }[] = [];
    const failures: RootstepError[] = [];
    for (const system of chosen(args)) {
      const before = installed(system, env).state;
      if (before === "missing") context.progress.note(`installing ${system.id} …`);
      try {
        const { folder } = await installSystem(system, {
          env,
          signal,
          wait: (ms) => setTimeout(ms, undefined, { signal }),
          onOutput: context.json ? undefined : (bytes) => void process.stderr.write(bytes),
        });
        done.push({ system: system.id, folder, was: before === "missing" ? "installed" : "there" });
      } catch (thrown) {
        throwIfInterrupted(signal);
        failures.push(asRootstepError(thrown)); // the others are of use without it
      }
    }
    const lines = done.map(
      ({ system, folder, was }) => `${system}: ${was === "there" ? "was there" : "installed"}, ${folder}`,
    );
    context.print(done, lines.join("\n"));
    const [first, ...more] = failures;
    if (first !== undefined && more.length === 0) throw first;
    if (first !== undefined) {
      const what = failures.map((failure) => failure.message).join("; ");
      throw new RootstepError("INSTALL_FAILED", { what: `${failures.length} systems could not be installed: ${what}` });
    }
    return EXIT.ok;
  },
});

function chosen(args: Arguments): readonly ProgramSystem[] {
  const names = Array.isArray(args.system) ? args.system.map(String) : [];
  if (args.all === true) {
    return programSystems.filter(({ heavy, install: { kind } }) => heavy !== true && kind === "lock");
  }
  if (names.length > 0) return names.map(programSystemById);
  throw new RootstepError("USAGE", {
    what: "no system is named",
    hint: "Name one of `rootstep list systems`, or --all.",
  });
}
