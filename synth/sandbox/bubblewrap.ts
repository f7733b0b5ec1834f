import { existsSync, lstatSync, readFileSync, readlinkSync } from "node:fs";
import { RootstepError } from "../../src/errors.ts";
import { confinedProcess, type ProcessResult } from "./confined-process.ts";
import { limited, pythonPath } from "./python.ts";
import { DEFAULT_LIMITS, type PythonProgram, type Sandbox, type SandboxLimits } from "./sandbox.ts";

/** Where programs find their files. */
const FOLDER = "/program";
const NOBODY = "65534";
const FIRST_INPUT = 4;

/**
 * A sandbox of Linux namespaces by bubblewrap: no network, the system read-only and without /etc, /home and /root, an
 * empty environment, /tmp of its own in memory, processes that see only each other and die together, and rlimits.
 *
 * As root the program is run as nobody: the kernel does not count the processes of root, so a fork bomb would have no bound.
 */
export function bubblewrapSandbox(bwrap = "bwrap"): Sandbox {
  let probed: Promise<void> | undefined;
  const start = (program: PythonProgram, signal?: AbortSignal): Promise<ProcessResult> => {
    const limits: SandboxLimits = { ...DEFAULT_LIMITS, ...program.limits };
    const names = Object.keys(program.files);
    const command = [
      ...asNobody(),
      bwrap,
      ...confinement(names, limits),
      "--",
      ...limited(limits, `${FOLDER}/main.py`),
    ];
    const [executable = bwrap, ...args] = command;
    return confinedProcess({
      command: executable,
      args,
      env: { PATH: process.env.PATH ?? "/usr/bin:/bin" }, // bubblewrap's own; it clears the program's
      inputs: Object.values(program.files),
      limits,
      signal,
    });
  };
  const probe = async (): Promise<void> => {
    const result = await start({ files: { "main.py": "print('ready')" } });
    if (result.stdout === "ready\n") return;
    const { why, hint } = explain(result);
    throw new RootstepError("SANDBOX_UNAVAILABLE", { what: `bubblewrap cannot run programs here: ${why}`, hint });
  };
  const require = (): Promise<void> => {
    probed ??= probe();
    return probed;
  };
  return {
    id: "bubblewrap",
    require,
    async run(program, signal) {
      await require();
      const { status, startError, ...result } = await start(program, signal);
      // bubblewrap reports the child it started; without that report nothing of the program ran.
      if (startError === undefined && status.includes('"child-pid"')) return result;
      throw new RootstepError("SANDBOX_FAILED", {
        what: `bubblewrap did not start the program: ${startError?.message ?? firstLine(result.stderr)}`,
        cause: startError,
      });
    },
  };
}

function asNobody(): readonly string[] {
  return process.getuid?.() === 0 ? ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--"] : [];
}

function confinement(names: readonly string[], limits: SandboxLimits): string[] {
  const files = names.flatMap((name, position) => [
    "--ro-bind-data",
    String(FIRST_INPUT + position),
    `${FOLDER}/${safeName(name)}`,
  ]);
  return [
    ...["--unshare-all", "--die-with-parent", "--new-session", "--clearenv"],
    ...["--hostname", "sandbox", "--json-status-fd", "3", "--cap-drop", "ALL"],
    ...["--setenv", "PATH", "/usr/bin:/bin", "--setenv", "HOME", "/tmp", "--setenv", "LC_ALL", "C.UTF-8"],
    ...["--setenv", "PYTHONHASHSEED", "0"], // sets in one order, run after run
    ...systemFolders(),
    ...["--proc", "/proc", "--dev", "/dev"],
    ...["--size", String(limits.fileBytes), "--tmpfs", "/tmp"],
    ...files,
    ...["--chdir", "/tmp", "--remount-ro", "/"],
  ];
}

/** /usr read-only, and /bin, /lib, … as the host has them: links into /usr, or folders. */
function systemFolders(): string[] {
  const others = ["/bin", "/sbin", "/lib", "/lib32", "/lib64"].filter(existsSync).flatMap((folder) => {
    if (lstatSync(folder).isSymbolicLink()) return ["--symlink", readlinkSync(folder), folder];
    return ["--ro-bind", folder, folder];
  });
  return ["--ro-bind", "/usr", "/usr", ...others];
}

function safeName(name: string): string {
  if (/^[\w.-]+$/u.test(name) && !name.startsWith(".")) return name;
  throw new RootstepError("SANDBOX_FAILED", { what: `"${name}" is no plain file name`, where: "files of a program" });
}

/** Why a probe failed, in the words of who has to mend it. */
function explain({ startError, stderr }: ProcessResult): { readonly why: string; readonly hint: string } {
  if (startError?.code === "ENOENT") {
    const missing = process.getuid?.() === 0 ? "bwrap or setpriv is" : "bwrap is";
    return { why: `${missing} not installed`, hint: "Install bubblewrap (`apt-get install bubblewrap util-linux`)." };
  }
  const said = firstLine(stderr);
  if (/execvp|setpriv: failed to execute/u.test(stderr)) {
    return { why: said, hint: "Install bubblewrap, util-linux (prlimit) and Python 3 below /usr." };
  }
  if (/new namespace|No permissions|uid map|clone failed|unshare/u.test(stderr)) {
    return { why: `${said}; ${userNamespaces()}`, hint: USER_NAMESPACE_HINT };
  }
  if (/RTM_NEWADDR|loopback/u.test(stderr)) {
    return { why: `${said}: AppArmor restricts user namespaces`, hint: USER_NAMESPACE_HINT };
  }
  if (/mount proc|proc/u.test(stderr)) {
    return {
      why: `${said}: this container masks /proc`,
      hint: "Run the container with `--security-opt systempaths=unconfined`, or outside a container.",
    };
  }
  return { why: said === "" ? `python3 at ${pythonPath()} did not run` : said, hint: USER_NAMESPACE_HINT };
}

const USER_NAMESPACE_HINT =
  "Allow unprivileged user namespaces (a container needs `--security-opt seccomp=unconfined`), run where they are allowed, " +
  "or pass --unsafe-no-sandbox if you trust the code that models write.";

/** What the kernel says about user namespaces. */
function userNamespaces(): string {
  const settings: readonly (readonly [string, string, string])[] = [
    ["/proc/sys/kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone is 0"],
    ["/proc/sys/user/max_user_namespaces", "0", "user.max_user_namespaces is 0"],
    ["/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", "AppArmor restricts user namespaces"],
  ];
  const off = settings.filter(([file, value]) => existsSync(file) && readFileSync(file, "utf8").trim() === value);
  return (
    off.map(([, , why]) => why).join(", ") || "user namespaces are denied, as by the seccomp profile of a container"
  );
}

function firstLine(text: string): string {
  return text.trim().split("\n")[0] ?? "";
}
