/** Bounds of one program run in a sandbox. */
export interface SandboxLimits {
  /** Wall clock; then the whole process tree is killed. */
  readonly wallSeconds: number;
  /** Processor time of one process. */
  readonly cpuSeconds: number;
  /** Address space of one process. */
  readonly memoryBytes: number;
  /** Largest file a process may write, and the size of the sandbox's own /tmp. */
  readonly fileBytes: number;
  /** Processes and threads at a time. */
  readonly processes: number;
  /** Standard output, and standard error, each; a program that writes more is killed. */
  readonly outputBytes: number;
}

/** The wall clock comes long after the processor time, so that a busy machine does not change what ends a program. */
export const DEFAULT_LIMITS: SandboxLimits = {
  wallSeconds: 60,
  cpuSeconds: 6,
  memoryBytes: 512 * 1024 * 1024,
  fileBytes: 16 * 1024 * 1024,
  processes: 16,
  outputBytes: 4 * 1024 * 1024,
};

export interface PythonProgram {
  /** File name → content, read-only beside each other; `main.py` is run. */
  readonly files: Readonly<Record<string, string>> & { readonly "main.py": string };
  readonly limits?: Partial<SandboxLimits>;
}

export interface SandboxResult {
  /** What ended the program: itself, or the limit it met. */
  readonly ended: "exited" | "wall clock" | "processor time" | "output";
  /** Null where it was killed; 128 + n for signal n. */
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs Python that nobody vouches for. */
export interface Sandbox {
  readonly id: "bubblewrap" | "none";
  /**
   * Runs a program to its end or to a limit. What the program does, however bad, is a result and never an error.
   * @throws RootstepError SANDBOX_UNAVAILABLE, SANDBOX_FAILED (the sandbox itself broke), INTERRUPTED
   */
  run(program: PythonProgram, signal?: AbortSignal): Promise<SandboxResult>;
  /** Makes sure that programs can be run here. @throws RootstepError SANDBOX_UNAVAILABLE saying why not */
  require(): Promise<void>;
}

/** What needs a sandbox is made with bubblewrap's; a user may put another in its place. */
export interface RunsCode<T> {
  withSandbox?(sandbox: Sandbox): T;
}

/** `made` with this sandbox, if it runs code at all. */
export function inSandbox<T extends RunsCode<T>>(made: T, sandbox: Sandbox): T {
  return made.withSandbox?.(sandbox) ?? made;
}
