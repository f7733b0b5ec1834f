import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { clusterSchema } from "../../../trainer/launch/cluster-config.ts";
import { kuberayManifest } from "../../../trainer/launch/kuberay.ts";
import { launchJob } from "../../../trainer/launch/plan.ts";
import { shippedConfig } from "./shipped-config.ts";

/** The operator's own schema, cut to what a manifest of ours may use; see its first line. */
const rayJob = z.fromJSONSchema(JSON.parse(readFileSync(new URL("rayjob-crd.json", import.meta.url), "utf8")));

describe("the KubeRay manifest by the operator's schema", () => {
  const manifest = (name = "job"): unknown => {
    const cluster = { ...clusterSchema.parse({}), container: "registry.example/rootstep:1", tensorParallel: 4 };
    const config = { ...shippedConfig("qwen3-8b-h100x8"), cluster };
    return parse(kuberayManifest(launchJob(config, { configFile: "c.yaml", data: ["d.jsonl"], out: "/run", name })));
  };
  const podSchema = z.looseObject({ containers: z.array(z.looseObject({})) });
  const jobSchema = z.looseObject({
    spec: z.looseObject({
      rayClusterSpec: z.looseObject({
        headGroupSpec: z.looseObject({
          rayStartParams: z.record(z.string(), z.string()),
          template: z.looseObject({ spec: podSchema }),
        }),
      }),
    }),
  });

  it("is a RayJob", () => {
    expect(rayJob.safeParse(manifest()).error).toBeUndefined();
  });

  it("would not be with a misspelt field, a wrong type, or without its head", () => {
    const changed = (change: (job: z.infer<typeof jobSchema>) => void): unknown => {
      const job = jobSchema.parse(manifest());
      change(job);
      return job;
    };
    const container = (job: z.infer<typeof jobSchema>) =>
      job.spec.rayClusterSpec.headGroupSpec.template.spec.containers[1];
    const wrong = [
      changed((job) => Object.assign(job.spec, { entryPoint: "x" })),
      changed((job) => Object.assign(job.spec, { backoffLimit: "3" })),
      changed((job) => Object.assign(job.spec.rayClusterSpec, { headGroupSpec: undefined })),
      changed((job) => Object.assign(container(job) ?? {}, { startupProbe: { periodSecond: 10 } })),
      changed((job) => Object.assign(container(job) ?? {}, { command: "bash" })),
    ];
    expect(wrong.map((job) => rayJob.safeParse(job).success)).toEqual([false, false, false, false, false]);
  });

  it("leaves the dashboard where the operator can reach it", () => {
    const { headGroupSpec } = jobSchema.parse(manifest()).spec.rayClusterSpec;
    expect(headGroupSpec.rayStartParams).not.toHaveProperty("dashboard-host");
  });

  it("refuses a name that Kubernetes does not take", () => {
    for (const name of ["Job", "1job", "job-", "a".repeat(48), "job_1"]) {
      expect(() => manifest(name)).toThrow(expect.objectContaining({ code: "LAYOUT_INVALID" }));
    }
    expect(() => manifest("a".repeat(47))).not.toThrow();
  });
});
