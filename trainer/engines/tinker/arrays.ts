/** Little-endian arrays as the protocol packs them: the order of every machine that Node runs on here. */

export function int32Bytes(values: readonly number[]): Uint8Array {
  return bytesOf(Int32Array.from(values));
}

export function int64Bytes(values: readonly number[]): Uint8Array {
  return bytesOf(BigInt64Array.from(values, BigInt));
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
  return Array.from(new Float32Array(aligned(bytes)));
}

function bytesOf(array: Int32Array | BigInt64Array | Float32Array): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}

/** A copy that begins at an address every element type may begin at. */
function aligned(bytes: Uint8Array): ArrayBuffer {
  const copy = new ArrayBuffer(bytes.byteLength);
  new Uint8Array(copy).set(bytes);
  return copy;
}
