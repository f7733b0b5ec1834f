import { shippedPath } from "../../../src/package-root.ts";
import { loadConfig } from "../../../src/runs/config.ts";
import { type TrainConfig, trainConfigSchema } from "../../../trainer/config.ts";

export function shippedConfig(name: string): TrainConfig {
  const file = shippedPath("configs", `${name}.yaml`);
  return loadConfig(trainConfigSchema, { verb: "train", file, env: {}, flags: {} });
}
