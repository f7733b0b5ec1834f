import { engineConformance } from "./engine.conformance.ts";
import { bytesToDoubles, createTabularEngine, doublesToBytes } from "./tabular-engine.ts";

engineConformance("the tabular softmax policy", {
  open: async () => createTabularEngine(),
  prompts: [[0], [1], [2]],
  readWeights: ({ weights }) => bytesToDoubles(weights),
  writeWeights: (weights) => ({ weights: doublesToBytes(weights) }),
  tolerance: { logprob: 1e-12, gradient: 1e-4 },
  differenceStep: 1e-4,
});
