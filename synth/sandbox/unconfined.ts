import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RootstepError } from "../../src/errors.ts";
import { confinedProcess } from "./confined-process.ts";
import { limited } from "./python.ts";
import { DEFAULT_LIMITS, type Sandbox, type SandboxLimits } from "./sandbox.ts";

/**
 * No sandbox: programs run as the user, with limits and an empty environment but with network and files. Only what
 * `--unsafe-no-sandbox` asks for.
 */
export const unconfined: Sandbox = {
  id: "none",
  async require() {
    await unconfined.run({ files: { "main.py": "" } });
  },
  async run(program, signal) {
    const limits: SandboxLimits = { ...DEFAULT_LIMITS, ...program.limits };
    const folder = await mkdtemp(join(tmpdir(), "rootstep-unconfined-"));
    try {
      await Promise.all(Object.entries(program.files).map(([name, content]) => writeFile(join(folder, name), content)));
      // The processes of a user are counted all together, so that limit cannot be set here.
      const [command = "prlimit", ...args] = limited(limits, join(folder, "main.py")).filter(
        (argument) => !argument.startsWith("--nproc"),
      );
      const env = { PATH: process.env.PATH ?? "/usr/bin:/bin", HOME: folder, LC_ALL: "C.UTF-8", PYTHONHASHSEED: "0" };
      const result = await confinedProcess({ command, args, env, cwd: folder, limits, signal });
      const { status: _, startError, ...rest } = result;
      if (startError === undefined) return rest;
      throw new RootstepError("SANDBOX_UNAVAILABLE", {
        what: `Python cannot be run under limits: ${startError.message}`,
        hint: "Install util-linux (prlimit) and Python 3.",
        cause: startError,
      });
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
};
