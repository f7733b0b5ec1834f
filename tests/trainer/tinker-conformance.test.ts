import { afterAll } from "vitest";
import { floatBytes } from "../../trainer/engines/embedded/state.ts";
import { tinkerProfiles } from "../../trainer/engines/tinker/profiles.ts";
import { failedRuns, formulaWeights } from "./embedded/support.ts";
import { engineConformance } from "./engine.conformance.ts";
import { contentsOf, openServed, referenceTo, servedCodec, servedModel, serveEmbedded } from "./tinker-client.ts";

for (const profile of tinkerProfiles) {
  const server = await serveEmbedded(profile, {}, formulaWeights(servedModel));
  afterAll(() => server.close());

  engineConformance(`the client of ${profile.id}, before the embedded transformer`, {
    open: () => openServed(server.url, profile),
    prompts: failedRuns("conformance", 3).map(({ trajectory }) => servedCodec.encodePrompt(trajectory)),
    contents: (state) => contentsOf(server, state),
    readWeights: ({ weights }) => new Float32Array(Uint8Array.from(weights).buffer),
    writeWeights: (weights) => referenceTo(server, { weights: floatBytes(Float32Array.from(weights)) }),
    tolerance: { logprob: 1e-4, gradient: 1e-2 },
    differenceStep: 1e-3,
    cannot: [
      ...(profile.reduction === "sequence-mean" ? (["accumulate over calls"] as const) : []),
      ...(profile.gradientClipping === undefined ? (["clip the gradient"] as const) : []),
    ],
  });
}
