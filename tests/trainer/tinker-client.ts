import { z } from "zod";
import { shippedPath } from "../../src/package-root.ts";
import { openEmbeddedEngine } from "../../trainer/engines/embedded/engine.ts";
import { readManifest } from "../../trainer/engines/embedded/manifest.ts";
import type { EngineState } from "../../trainer/engines/engine.ts";
import { openTinkerEngine, type TinkerEngine, type TinkerEngineOptions } from "../../trainer/engines/tinker/engine.ts";
import type { TinkerProfile } from "../../trainer/engines/tinker/profiles.ts";
import { embeddedTextCodec, servedLimits } from "./tinker-embedded.ts";
import { startTinkerServer, type TinkerServer, type TinkerServerOptions } from "./tinker-server.ts";

export const BASE_MODEL = "rootstep/embedded";
const { model } = await readManifest(shippedPath("data", "embedded"));
export const servedModel = model;
export const servedCodec = embeddedTextCodec(model);

/** The embedded engine behind a server that behaves as the profile says. */
export function serveEmbedded(
  profile: TinkerProfile,
  more: Partial<TinkerServerOptions> = {},
  weights?: Float32Array,
): Promise<TinkerServer> {
  const openEngine = () => openEmbeddedEngine(weights && { weights });
  return startTinkerServer({ profile, baseModel: BASE_MODEL, openEngine, ...more });
}

export function openServed(
  url: URL,
  profile: TinkerProfile,
  more: Partial<TinkerEngineOptions> = {},
): Promise<TinkerEngine> {
  return openTinkerEngine({
    address: { url },
    profile,
    baseModel: BASE_MODEL,
    codec: servedCodec,
    limits: servedLimits(model),
    lora: { rank: 4, seed: 1 },
    ...more,
  });
}

const referenceSchema = z.object({ path: z.string() });
const pathIn = (reference: Uint8Array): string =>
  referenceSchema.parse(JSON.parse(Buffer.from(reference).toString("utf8"))).path;

/** What the server holds under the paths of a state. */
export function contentsOf(server: TinkerServer, { weights, optimizer }: EngineState): EngineState {
  const moments = optimizer && server.checkpoint(pathIn(optimizer)).optimizer;
  return { weights: server.checkpoint(pathIn(weights)).weights, ...(moments && { optimizer: moments }) };
}

/** A state as a checkpoint of the server. */
export function referenceTo(server: TinkerServer, state: EngineState): EngineState {
  const reference = Buffer.from(JSON.stringify({ tinker: 1, path: server.store(state) }));
  return { weights: reference, ...(state.optimizer && { optimizer: reference }) };
}
