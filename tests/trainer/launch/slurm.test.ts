import { execFileSync, spawn } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { clusterSchema } from "../../../trainer/launch/cluster-config.ts";
import { ENGINE_PORT, FIRST_ROLLOUT_PORT } from "../../../trainer/launch/commands.ts";
import { launchJob } from "../../../trainer/launch/plan.ts";
import { slurmScript } from "../../../trainer/launch/slurm.ts";
import { shippedConfig } from "./shipped-config.ts";

/** A server that answers its health path, ends by itself never, and leaves a note of its GPUs. */
const SERVER = `require("node:http").createServer((_, response) => response.end("{}")).listen(process.argv[1], "127.0.0.1")`;
const has = (program: string): boolean => {
  try {
    execFileSync("sh", ["-c", `command -v ${program}`]);
    return true;
  } catch {
    return false;
  }
};
const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });

describe("the SLURM script", () => {
  let folder: string;
  let running: number | undefined;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "rootstep-slurm-"));
  });
  afterEach(() => {
    try {
      if (running !== undefined) process.kill(-running, "SIGKILL");
    } catch {
      // The job and all it started have ended.
    }
    rmSync(folder, { recursive: true, force: true });
  });

  const script = (engineCommand: string, rolloutCommand: string): string => {
    const config = shippedConfig("qwen3-8b-h100x8");
    const { cluster } = config;
    if (cluster === undefined) throw new Error("no cluster");
    const job = launchJob(
      { ...config, cluster: { ...cluster, engineCommand, rolloutCommand, rolloutGpus: 2, readyMinutes: 1 } },
      { configFile: "my config.yaml", data: ["data/it's.jsonl"], out: join(folder, "run"), name: "tracer" },
    );
    return slurmScript(job);
  };

  it.skipIf(!has("shellcheck"))("is a clean shell script", () => {
    const file = join(folder, "job.sbatch");
    const config = shippedConfig("qwen3-8b-h100x8");
    writeFileSync(file, slurmScript(launchJob(config, { configFile: "c", data: ["d"], out: "run", name: "job" })));
    execFileSync("shellcheck", ["-S", "warning", file]);
    execFileSync("bash", ["-n", file]);
  });

  it.skipIf(!has("shellcheck"))(
    "runs servers and training in the image, which sees the job's folders, where there is one",
    () => {
      const { cluster, ...config } = shippedConfig("qwen3-8b-h100x8");
      const paths = {
        configFile: "/configs/my config.yaml",
        data: ["data/a.jsonl", "data/b.jsonl"],
        out: "run",
        name: "job",
      };
      const container = "registry.example#rootstep:1";
      const text = (image: object) =>
        slurmScript(launchJob({ ...config, cluster: { ...clusterSchema.parse(cluster), ...image } }, paths));
      const file = join(folder, "job.sbatch");
      writeFileSync(file, text({ container }));
      execFileSync("shellcheck", ["-S", "warning", file]);
      const [inside, outside] = [text({ container }), text({})];
      expect(inside).toContain("--container-image='registry.example#rootstep:1'");
      expect(inside).toContain("for folder in . run /configs data Qwen3-8B; do");
      expect(inside).toMatch(/^"\$\{step\[@\]\}" --nodelist="\$first" rootstep train run /mu);
      expect(outside).toMatch(/^rootstep train run /mu);
      expect(outside).not.toContain("container");
      // What the lines do, with a stand-in for srun.
      const lines = inside.slice(inside.indexOf("step=("), inside.indexOf("steps=()"));
      const shown = execFileSync("bash", ["-euc", `${lines}printf '%s\\n' "\${step[@]}"`], {
        cwd: folder,
        encoding: "utf8",
      });
      const here = realpathSync(folder);
      const mounts = [here, `${here}/run`, "/configs", `${here}/data`, `${here}/Qwen3-8B`].map(
        (path) => `${path}:${path}`,
      );
      expect(shown).toContain(`--container-mounts=${mounts.join(",")}\n--container-workdir=${here}\n`);
    },
  );

  /** Runs the script with stand-ins for SLURM's commands, which run everything here, and for rootstep. */
  async function runScript(
    training: string,
    more: { readonly engineFails?: boolean; readonly signal?: NodeJS.Signals } = {},
  ) {
    const bin = join(folder, "bin");
    mkdirSync(bin);
    const program = (name: string, body: string): void => {
      writeFileSync(join(bin, name), `#!/usr/bin/env bash\n${body}\n`);
      chmodSync(join(bin, name), 0o755);
    };
    program("srun", `while [[ "$1" == --* ]]; do shift; done; exec "$@"`);
    program("scontrol", `if [ "$1" = show ]; then echo here; else echo "$@" >> "${folder}/scontrol"; fi`);
    program("hostname", "echo here");
    program("rootstep", training);
    const [enginePort, firstRollout] = [await freePort(), await freePort()];
    const serve = `"${process.execPath}" -e '${SERVER}'`;
    const text = script(
      more.engineFails === true
        ? "exit 3"
        : `echo "$CUDA_VISIBLE_DEVICES" > "${folder}/gpus-engine"; exec ${serve} ${enginePort}`,
      `echo "$CUDA_VISIBLE_DEVICES" > "${folder}/gpus-$PORT"; exec ${serve} {port}`,
    )
      .replaceAll(`127.0.0.1:${ENGINE_PORT}`, `127.0.0.1:${enginePort}`)
      .replaceAll(String(FIRST_ROLLOUT_PORT), String(firstRollout));
    const file = join(folder, "job.sbatch");
    writeFileSync(file, text);
    const job = spawn("bash", [file], {
      env: { ...process.env, PATH: `${bin}:${process.env.PATH}`, SLURM_JOB_NODELIST: "here", SLURM_JOB_ID: "17" },
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    running = job.pid;
    let stderr = "";
    job.stderr.on("data", (bytes: Buffer) => {
      stderr += bytes.toString("utf8");
    });
    if (more.signal !== undefined) {
      await expect.poll(() => existsSync(join(folder, "training")), { timeout: 60_000 }).toBe(true);
      job.kill(more.signal);
    }
    const status = await new Promise((resolve) => job.once("close", resolve));
    return { status, stderr, firstRollout };
  }
  const note = (name: string): string => readFileSync(join(folder, name), "utf8").trim();

  it("starts the servers on their GPUs, trains when they are healthy, and ends them", async () => {
    const { status, stderr, firstRollout } = await runScript(`printf '%s\\n' "$@" > "${folder}/training"`);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(note("gpus-engine")).toBe("0,1,2,3");
    expect([note(`gpus-${firstRollout}`), note(`gpus-${firstRollout + 1}`)]).toEqual(["4", "5"]);
    const asked = note("training").split("\n");
    expect(asked.slice(0, 6)).toEqual(["train", "run", "--config", "my config.yaml", "--data", "data/it's.jsonl"]);
    expect(asked.slice(-3)).toEqual([
      "--servers.rollouts",
      `http://127.0.0.1:${firstRollout}`,
      `http://127.0.0.1:${firstRollout + 1}`,
    ]);
    await expect(fetch(`http://127.0.0.1:${firstRollout}`)).rejects.toThrow();
    expect(existsSync(join(folder, "scontrol"))).toBe(false);
  });

  it("saves and goes back into the queue when it is preempted", async () => {
    const training = `trap 'echo interrupted > "${folder}/saved"; exit 130' TERM; touch "${folder}/training"; while true; do sleep 0.1; done`;
    const { status } = await runScript(training, { signal: "SIGUSR1" });
    expect(status).toBe(130);
    expect(note("saved")).toBe("interrupted");
    expect(note("scontrol")).toBe("requeue 17");
  });

  it("ends with the training's own status where it fails", async () => {
    expect((await runScript("exit 1")).status).toBe(1);
    expect(existsSync(join(folder, "scontrol"))).toBe(false);
  });

  it("says where to look when a server ends before it is ready, and trains nothing", async () => {
    const { status, stderr } = await runScript(`touch "${folder}/training"`, { engineFails: true });
    expect(status).toBe(1);
    expect(stderr).toContain("a server ended before it was ready");
    expect(existsSync(join(folder, "training"))).toBe(false);
  });
});
