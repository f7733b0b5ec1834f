import type { AgentSystem } from "./system.ts";

/** How a system's packages come onto the machine. */
export type InstallRecipe =
  /**
   * From the lock that ships in its folder: `requirements.txt` with every package pinned (installed without dependency
   * resolution, so it must name them all) or `package-lock.json`.
   */
  | { readonly kind: "lock"; readonly pipOptions?: readonly string[] | undefined }
  /** The user's own checkout with the packages it wants; rootstep installs nothing. */
  | {
      readonly kind: "checkout";
      /** Variable that holds the checkout's folder, ROOTSTEP_AFLOW. */
      readonly variable: string;
      /** Variable that holds the interpreter with the checkout's packages; default: `python3` or `node` of PATH. */
      readonly interpreter: string;
      /** A file of the checkout by which it is known. */
      readonly mark: string;
      readonly source: string;
    };

/**
 * A multi-agent system that runs as a program of its own behind the proxy. Its folder `synth/systems/FOLDER/` has
 * `system.ts` (this), the program, its lock and `NOTES.md` (its quirks).
 *
 * The program is told by environment: ROOTSTEP_TASK (JSON: set, id, text), ROOTSTEP_MODEL, OPENAI_BASE_URL and
 * OPENAI_API_KEY; its answer is the `answer` of the last JSON line it prints. `synth/systems/support/` has helpers for
 * both languages.
 */
export interface ProgramSystem {
  readonly id: string;
  readonly title: string;
  readonly language: "python" | "node";
  /** Python versions it runs on, the best first: `["3.12", "3.11"]`. */
  readonly python?: readonly string[] | undefined;
  /** Its folder below synth/systems/; systems of one folder share an installation. */
  readonly folder: string;
  /** The program's file in that folder. */
  readonly program: string;
  readonly arguments?: readonly string[] | undefined;
  readonly install: InstallRecipe;
  /** Names of its agents, as its lanes have them. */
  readonly agents: readonly string[];
  /** How the proxy tells its agents apart: one base URL per agent, a key per agent, or the system prompt. */
  readonly lanes: "url" | "key" | "prompt";
  /** Telemetry off, caches off, … */
  readonly environment?: Readonly<Record<string, string>> | undefined;
  /**
   * The determinism preload. `needed`: without it a rerun is not the recorded run even with masks; `off`: masks or
   * nothing are enough.
   */
  readonly preload: "needed" | "off";
  /** Match with ids and clocks masked (L1). */
  readonly masks: boolean;
  /** Ids of its own making that are masked too: see `withOwnIds` in synth/tape/masks.ts. */
  readonly idPatterns?: readonly string[] | undefined;
  readonly sideEffects: AgentSystem["sideEffects"];
  readonly stepPolicy: string;
  /** Too large to install for each CI run: its tests run where it is installed by hand. */
  readonly heavy?: boolean | undefined;
  /** Seconds. */
  readonly timeLimit: number;
}
