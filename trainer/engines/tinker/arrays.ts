/** Little-endian arrays as the protocol packs them: the order of every machine that Node runs on here. */

export function int32Bytes(values: readonly number[]): Uint8Array {
  return bytesOf(Int32Array.from(values));
}

/** @param values whole numbers of at most 53 bits. In halves: a `BigInt` for each would be a fifth of a training step's own time */
export function int64Bytes(values: readonly number[]): Uint8Array {
  const words = new Int32Array(2 * values.length);
  for (let i = 0; i < values.length; i++) {
    const value = values[i] ?? 0;
    words[2 * i] = value;
    words[2 * i + 1] = Math.floor(value / 2 ** 32);
  }
  return bytesOf(words);
}

export function float32Bytes(values: readonly number[]): Uint8Array {
  return bytesOf(Float32Array.from(values));
}

export function readInt32(bytes: Uint8Array): number[] {
  return Array.from(new Int32Array(aligned(bytes)));
}

export function readInt64(bytes: Uint8Array): number[] {
  return Array.from(new BigInt64Array(aligned(bytes)), Number);
}

export function readFloat32(bytes: Uint8Array): number[] {
  const floats = new Float32Array(aligned(bytes));
  // `Array.from` asks the iterator for each number, which takes seven times as long.
  const values = new Array<number>(floats.length);
  for (let i = 0; i < floats.length; i++) values[i] = floats[i] ?? 0;
  return values;
}

function bytesOf(array: Int32Array | Float32Array): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}

/** A copy that begins at an address every element type may begin at. */
function aligned(bytes: Uint8Array): ArrayBuffer {
  const copy = new ArrayBuffer(bytes.byteLength);
  new Uint8Array(copy).set(bytes);
  return copy;
}
