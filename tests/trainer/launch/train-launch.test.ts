import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { shippedPath } from "../../../src/package-root.ts";
import { cli } from "../../cli/run-cli.ts";
import { temporaryFolder } from "../../temporary-folder.ts";

describe("train launch", () => {
  let folder: string;
  let out: string;
  beforeEach(() => {
    folder = temporaryFolder("launch");
    out = join(folder, "it's a run");
  });

  const launch = (target: string, more: readonly string[], env: Record<string, string> = {}) =>
    cli(
      [
        ...["train", "launch", "--target", target, "--config", shippedPath("configs", "qwen3-8b-h100x8.yaml")],
        ...["--data", "runs/a.jsonl", "runs/b.jsonl", "--out", out, "--name", "tracer", ...more],
      ],
      env,
    );
  /** A folder of programs before the others on PATH. */
  function standIn(name: string, body: string): Record<string, string> {
    const bin = join(folder, "bin");
    mkdirSync(bin, { recursive: true });
    writeFileSync(join(bin, name), `#!/usr/bin/env bash\n${body}\n`);
    chmodSync(join(bin, name), 0o755);
    return { PATH: `${bin}:${process.env.PATH}` };
  }

  const targets: readonly (readonly [string, readonly string[], RegExp])[] = [
    ["slurm", [], /#SBATCH --requeue[\s\S]*rootstep train run/u],
    [
      "ray",
      ["--servers.engine", "http://engine:8001", "--servers.rollouts", "http://a:8000", "http://b:8000"],
      /rootstep train run .*--servers\.rollouts http:\/\/a:8000 http:\/\/b:8000/u,
    ],
    ["kuberay", ["--cluster.container", "image:1", "--cluster.tensor-parallel", "4"], /kind: RayJob/u],
    ["ssh-print", [], /# Terminal 3[\s\S]*rootstep train run/u],
  ];
  for (const [target, more, file] of targets) {
    it(`--target ${target} --dry-run prints its file and the memory of every part with its formula, and writes nothing`, async () => {
      const { code, stdout, stderr } = await launch(target, [...more, "--dry-run"]);
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      expect(stdout).toMatch(file);
      for (const formula of ["2·P / GPUs", "(2 + 4 + 8)·P_lora / GPUs", "tokens · hidden · (2·layers + 34)"]) {
        expect(stdout).toContain(formula);
      }
      expect(stdout).toMatch(/a step takes about \d+ s of sampling and \d+ s of training/u);
      expect(existsSync(out)).toBe(false);
    });
  }

  it("gives sbatch a script that bash and shellcheck find nothing wrong with, and says the job's number", async () => {
    const env = standIn("sbatch", `bash -n "\${@: -1}" && shellcheck -S warning "\${@: -1}" && echo 4711`);
    const { code, stdout, stderr } = await launch("slurm", ["--submit"], env);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toContain("submitted: 4711");
    expect(readFileSync(join(out, "job.sbatch"), "utf8")).toContain("runs/a.jsonl runs/b.jsonl");
    expect(existsSync(join(out, "logs"))).toBe(true);
  });

  it("says what sbatch had against it, and gives kubectl the manifest", async () => {
    const refused = await launch("slurm", ["--submit"], standIn("sbatch", "echo 'invalid partition' >&2; exit 1"));
    expect(refused.code).not.toBe(0);
    expect(refused.stderr).toContain("SUBMIT_FAILED");
    expect(refused.stderr).toContain("invalid partition");
    const kuberay = ["--submit", "--cluster.container", "image:1", "--cluster.tensor-parallel", "4"];
    const applied = await launch("kuberay", kuberay, standIn("kubectl", `grep -c 'kind: RayJob' "\${@: -1}"`));
    expect(applied.stdout).toContain("submitted: 1");
  });

  it("refuses a layout that cannot fit, with what takes the room, before it writes anything", async () => {
    const { code, stderr } = await launch("slurm", [
      "--cluster.parameters",
      "full",
      "--cluster.engine-gpus",
      "1",
      "--submit",
    ]);
    expect(code).not.toBe(0);
    expect(stderr).toMatch(/LAYOUT_INVALID[\s\S]*needs \d+\.\d GB on each GPU and has/u);
    expect(existsSync(out)).toBe(false);
  });
});
