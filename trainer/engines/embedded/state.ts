import { RootstepError } from "../../../src/errors.ts";
import type { EngineState } from "../engine.ts";
import type { AdamState } from "./adam.ts";

/**
 * Checkpoint blobs. Weights: the flat vector as little-endian float32, the shape of the shipped weights file. Optimiser: the step
 * count as a little-endian float64, then first and second moments as float32. Both survive a round trip bit for bit.
 */

const BYTES = Float32Array.BYTES_PER_ELEMENT;
const HEADER = Float64Array.BYTES_PER_ELEMENT;

export function encodeState(weights: Float32Array, adam: AdamState): EngineState {
  const optimizer = new Uint8Array(HEADER + 2 * weights.length * BYTES);
  new DataView(optimizer.buffer).setFloat64(0, adam.steps, true);
  optimizer.set(floatBytes(adam.first), HEADER);
  optimizer.set(floatBytes(adam.second), HEADER + weights.length * BYTES);
  return { weights: floatBytes(weights), optimizer };
}

/** @throws RootstepError CHECKPOINT_CORRUPT where a blob has another length, or holds numbers that are not finite. */
export function decodeState(
  state: EngineState,
  size: number,
): { readonly weights: Float32Array; readonly adam: AdamState | undefined } {
  const weights = decodeFloats(state.weights, size, "weights");
  if (state.optimizer === undefined) return { weights, adam: undefined };
  const { optimizer } = state;
  const expected = HEADER + 2 * size * BYTES;
  if (optimizer.byteLength !== expected) throw corrupt("optimizer", `${optimizer.byteLength} bytes, not ${expected}`);
  const steps = new DataView(optimizer.buffer, optimizer.byteOffset).getFloat64(0, true);
  if (!Number.isSafeInteger(steps) || steps < 0) throw corrupt("optimizer", "its step count is not a number of steps");
  const first = decodeFloats(optimizer.subarray(HEADER, HEADER + size * BYTES), size, "optimizer");
  const second = decodeFloats(optimizer.subarray(HEADER + size * BYTES), size, "optimizer");
  return { weights, adam: { first, second, steps } };
}

/** A flat vector of little-endian float32. @throws RootstepError CHECKPOINT_CORRUPT */
export function decodeFloats(bytes: Uint8Array, size: number, where: string): Float32Array {
  if (bytes.byteLength !== size * BYTES) throw corrupt(where, `${bytes.byteLength} bytes, not ${size * BYTES}`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const floats = new Float32Array(size);
  for (let i = 0; i < size; i += 1) {
    const x = view.getFloat32(i * BYTES, true);
    if (!Number.isFinite(x)) throw corrupt(where, `number ${i} is ${x}`);
    floats[i] = x;
  }
  return floats;
}

export function floatBytes(floats: Float32Array): Uint8Array {
  const bytes = new Uint8Array(floats.length * BYTES);
  const view = new DataView(bytes.buffer);
  floats.forEach((x, i) => {
    view.setFloat32(i * BYTES, x, true);
  });
  return bytes;
}

function corrupt(where: string, what: string): RootstepError {
  return new RootstepError("CHECKPOINT_CORRUPT", { what: `not a state of this embedded model: ${what}`, where });
}
