import { shippedPath } from "../../src/package-root.ts";
import { embeddedCodec } from "../../trainer/engines/embedded/codec.ts";
import { openEmbeddedEngine } from "../../trainer/engines/embedded/engine.ts";
import { readManifest } from "../../trainer/engines/embedded/manifest.ts";
import { floatBytes } from "../../trainer/engines/embedded/state.ts";
import { failedRuns, formulaWeights } from "./embedded/support.ts";
import { engineConformance } from "./engine.conformance.ts";

const { model } = await readManifest(shippedPath("data", "embedded"));

engineConformance("the embedded transformer", {
  open: () => openEmbeddedEngine({ weights: formulaWeights(model) }),
  prompts: failedRuns("conformance", 3).map(({ trajectory }) => embeddedCodec.encodePrompt(trajectory)),
  readWeights: ({ weights }) => new Float32Array(Uint8Array.from(weights).buffer),
  writeWeights: (weights) => ({ weights: floatBytes(Float32Array.from(weights)) }),
  // float32 throughout; two paths through the graphs round differently.
  tolerance: { logprob: 1e-4, gradient: 1e-2 },
  differenceStep: 1e-3,
});
