import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Secret } from "../../src/models/key.ts";
import { shippedPath } from "../../src/package-root.ts";
import { quoted } from "../../trainer/launch/commands.ts";
import { openRayJobs, type RayJobs } from "../../trainer/launch/ray.ts";
import { describeWithEngines, engineServers } from "./servers.ts";

describeWithEngines("a Ray cluster's Jobs API", () => {
  const folder = mkdtempSync(join(tmpdir(), "rootstep-ray-"));
  let jobs: RayJobs;
  beforeAll(() => {
    const { ray, rayToken } = engineServers();
    jobs = openRayJobs({ url: ray, key: new Secret(rayToken) });
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const ended = (id: string): Promise<string> =>
    expect
      .poll(async () => (await jobs.status(id)).status, { timeout: 900_000, interval: 2_000 })
      .toMatch(/SUCCEEDED|FAILED|STOPPED/u)
      .then(async () => (await jobs.status(id)).status);

  it("runs the first steps of the tiny configuration on the real servers", async () => {
    const { model, vllm, skyrl } = engineServers();
    const logs = [2, 115, 75, 38].map((n) => shippedPath("data", "who_and_when", "Algorithm-Generated", `${n}.json`));
    const out = join(folder, "run");
    const entrypoint = [
      process.execPath,
      shippedPath("dist", "src", "cli", "bin.js"),
      ...["train", "run", "--config", shippedPath("configs", "tiny-cpu.yaml"), "--steps", "2"],
      ...["--data", ...logs, "--held-out-share", "0", "--out", out],
      ...["--engine.base-model", model, "--engine.model-folder", model],
      ...["--servers.engine", skyrl.href, "--servers.rollouts", vllm.href],
    ];
    const id = await jobs.submit({
      entrypoint: entrypoint.map(quoted).join(" "),
      submissionId: `rootstep-tiny-${process.pid}`,
    });
    const status = await ended(id);
    expect(await jobs.logs(id)).toContain("2 of 2 steps done");
    expect(status).toBe("SUCCEEDED");
    expect(readFileSync(join(out, "metrics.jsonl"), "utf8").trim().split("\n")).toHaveLength(2);
  }, 1_200_000);

  it("says that a job failed, and that a name is taken", async () => {
    const id = await jobs.submit({
      entrypoint: "sh -c 'echo went wrong; exit 3'",
      submissionId: `rootstep-fails-${process.pid}`,
    });
    expect(await ended(id)).toBe("FAILED");
    expect(await jobs.logs(id)).toContain("went wrong");
    await expect(
      jobs.submit({ entrypoint: "true", submissionId: `rootstep-fails-${process.pid}` }),
    ).rejects.toMatchObject({
      code: "ENGINE_FAILED",
      what: expect.stringContaining("submitted before"),
    });
  }, 1_200_000);

  it("stops a job, knows no other, and lets nobody in without the token", async () => {
    const id = await jobs.submit({ entrypoint: "sleep 600", submissionId: `rootstep-sleeps-${process.pid}` });
    await expect.poll(async () => (await jobs.status(id)).status, { timeout: 300_000 }).toBe("RUNNING");
    await jobs.stop(id);
    expect(await ended(id)).toBe("STOPPED");
    await expect(jobs.status("rootstep-unknown")).rejects.toMatchObject({ code: "MODEL_REFUSED_REQUEST" });
    const stranger = openRayJobs({ url: engineServers().ray });
    await expect(stranger.status(id)).rejects.toMatchObject({ code: "MODEL_AUTH" });
  }, 1_200_000);
});
