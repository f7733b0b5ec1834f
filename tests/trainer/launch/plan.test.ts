import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { type ClusterConfig, clusterSchema, MODEL_SIZES } from "../../../trainer/launch/cluster-config.ts";
import { kuberayManifest } from "../../../trainer/launch/kuberay.ts";
import { engineMemory, kvBytesPerToken, loraParameterCount, parameterCount } from "../../../trainer/launch/memory.ts";
import { launchJob, nodesOf, planLaunch } from "../../../trainer/launch/plan.ts";
import { shippedConfig } from "./shipped-config.ts";

const QWEN = MODEL_SIZES["qwen3-8b"];
if (QWEN === undefined) throw new Error("the sizes of qwen3-8b are gone");
const PATHS = { configFile: "c.yaml", data: ["d.jsonl"], out: "run", name: "job" };

describe("memory of a launch", () => {
  it("counts Qwen3-8B's parameters as its safetensors index does", () => {
    // model.safetensors.index.json: total_size 16381470720 bytes of bf16.
    expect(2 * parameterCount(QWEN)).toBe(16_381_470_720);
  });

  it("counts keys and values, and adapters, as computed by hand", () => {
    // 36 layers · 2 (K, V) · 8 heads · 128 · 2 bytes.
    expect(kvBytesPerToken(QWEN)).toBe(147_456);
    // Per layer and rank: q and o 8192 each, k and v 5120 each, three MLP maps 16384 each.
    expect(loraParameterCount(QWEN, 1)).toBe(36 * (2 * 8192 + 2 * 5120 + 3 * 16_384));
  });

  const cluster = (changes: Partial<ClusterConfig> = {}): ClusterConfig => ({ ...clusterSchema.parse({}), ...changes });
  const lengths = { maxPrompt: 24_576, maxCompletion: 4_096, loraRank: 64 };

  it("gives 16 bytes per parameter to full training, shared by the engine's GPUs", () => {
    const { parts } = engineMemory(cluster({ parameters: "full", engineGpus: 4 }), lengths);
    expect((parts[0]?.bytes ?? 0) + (parts[1]?.bytes ?? 0)).toBe((16 * 8_190_735_360) / 4);
  });

  it("refuses what cannot fit, naming what takes the room", () => {
    const config = shippedConfig("qwen3-8b-h100x8");
    const full = { ...config, cluster: cluster({ parameters: "full", engineGpus: 1 }) };
    expect(() => planLaunch(launchJob(full, PATHS))).toThrow(
      expect.objectContaining({ code: "LAYOUT_INVALID", what: expect.stringMatching(/152\.\d GB .*weights 16\.4/u) }),
    );
    const small = { ...config, cluster: cluster({ gpuMemoryGB: 24 }) };
    expect(() => planLaunch(launchJob(small, PATHS))).toThrow(/vLLM server needs|training engine needs/u);
    const odd = { ...config, cluster: cluster({ rolloutGpus: 4, tensorParallel: 3 }) };
    expect(() => planLaunch(launchJob(odd, PATHS))).toThrow(/cannot be cut/u);
  });

  it("counts nodes: rollout GPUs that do not fit beside the engine take further ones", () => {
    expect(nodesOf(cluster())).toBe(1);
    expect(nodesOf(cluster({ rolloutGpus: 8 }))).toBe(2);
    expect(nodesOf(cluster({ rolloutGpus: 20 }))).toBe(3);
    expect(nodesOf(cluster({ rolloutGpus: 8, shared: true }))).toBe(1);
  });

  for (const name of ["qwen3-8b-h100x8", "qwen3-8b-lora-h100x1"]) {
    it(`fits ${name} without a warning`, () => {
      const plan = planLaunch(launchJob(shippedConfig(name), PATHS));
      expect(plan.warnings).toEqual([]);
      expect(plan.rollouts.fullLengthSequences).toBeGreaterThanOrEqual(8);
    });
  }

  it("has nothing to launch for the embedded engine or without a cluster", () => {
    const config = shippedConfig("qwen3-8b-h100x8");
    expect(() => launchJob({ ...config, engine: { kind: "embedded" } }, PATHS)).toThrow(/trains without them/u);
    const { cluster: _, ...bare } = config;
    expect(() => launchJob(bare, PATHS)).toThrow(/no cluster/u);
  });
});

describe("the KubeRay manifest", () => {
  const containerSchema = z.looseObject({ name: z.string(), image: z.string() });
  const manifestSchema = z.looseObject({
    kind: z.literal("RayJob"),
    spec: z.looseObject({
      entrypoint: z.string(),
      rayClusterSpec: z.looseObject({
        headGroupSpec: z.looseObject({
          template: z.looseObject({ spec: z.looseObject({ containers: z.array(containerSchema) }) }),
        }),
      }),
    }),
  });
  const config = shippedConfig("qwen3-8b-h100x8");
  const clustered = (changes: object) =>
    launchJob({ ...config, cluster: { ...clusterSchema.parse({}), ...changes } }, PATHS);

  it("runs the training beside engine and vLLM in one pod", () => {
    const job = clustered({ container: "registry.example/rootstep:1", tensorParallel: 4 });
    const { spec } = manifestSchema.parse(parse(kuberayManifest(job)));
    expect(spec.entrypoint).toContain("rootstep train run --config c.yaml --data d.jsonl --out run");
    const { containers } = spec.rayClusterSpec.headGroupSpec.template.spec;
    expect(containers.map(({ name }) => name)).toEqual(["ray-head", "engine", "vllm"]);
    expect(containers).toMatchObject([
      {},
      { resources: { limits: { "nvidia.com/gpu": 4 } } },
      { resources: { limits: { "nvidia.com/gpu": 4 } } },
    ]);
  });

  it("refuses layouts it cannot describe", () => {
    expect(() => kuberayManifest(clustered({ tensorParallel: 4 }))).toThrow(/needs an image/u);
    expect(() => kuberayManifest(clustered({ container: "i", tensorParallel: 1 }))).toThrow(/one vLLM server/u);
  });
});
