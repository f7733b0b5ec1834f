import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { shippedPath } from "../../src/package-root.ts";
import { engineServers } from "./servers.ts";

export type EngineName = "vllm" | "skyrl";

/** Sends a signal to every process of a real server: they share a group that `engines.sh` made. */
export function signalEngine(name: EngineName, signal: "SIGSTOP" | "SIGCONT" | "SIGKILL"): void {
  const pid = Number(readFileSync(join(engineServers().folder, `${name}.pid`), "utf8"));
  if (!(pid > 1)) throw new Error(`${name}.pid holds no process id`);
  process.kill(-pid, signal);
}

/** Starts a killed server again, on its port and with what it left on disk. Ready when `engineIsReady`. */
export function restartEngine(name: EngineName): void {
  execFileSync(shippedPath("scripts", "engines", "engines.sh"), ["restart", engineServers().folder, name], {
    stdio: "ignore",
  });
}

export async function engineIsReady(name: EngineName): Promise<void> {
  const { vllm, skyrl } = engineServers();
  const health = name === "vllm" ? new URL("/health", vllm) : new URL("/api/v1/healthz", skyrl);
  const healthy = (): Promise<boolean> =>
    fetch(health).then(
      ({ ok }) => ok,
      () => false,
    );
  await expect.poll(healthy, { timeout: 600_000, interval: 1_000 }).toBe(true);
}
