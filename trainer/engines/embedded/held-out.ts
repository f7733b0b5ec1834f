import { createHash } from "node:crypto";
import type { Trajectory } from "../../../src/trajectory/schema.ts";
import { parseChain } from "./chain.ts";
import type { Reference } from "./reference.ts";
import { operationWord } from "./vocabulary.ts";

/** Chains of a hundred that the shipped weights were never trained on. */
const HELD_OUT_PERCENT = 20;

/** `16-3-4*2`: two problems with one key are the same chain. */
export function chainKey({ start, operations }: Reference): string {
  return `${start}${operations.map(operationWord).join("")}`;
}

/** True for the fifth of all chains, by hash, that no training of the shipped weights has seen. */
export function isHeldOutChain(chain: Reference): boolean {
  const hash = createHash("sha256").update(chainKey(chain)).digest();
  return hash.readUInt32BE(0) % 100 < HELD_OUT_PERCENT;
}

/**
 * True where the shipped weights were never trained on the trajectory's problem: an honest test set is made of these.
 * @throws RootstepError VOCABULARY
 */
export function isHeldOut(trajectory: Trajectory): boolean {
  return isHeldOutChain(parseChain(trajectory));
}
