import { createHash } from "node:crypto";
import { createRequire } from "node:module";

// canonicalize 2.1 is CommonJS (`module.exports = serialize`) but its types say `export default`; under NodeNext an
// import of it either fails to type-check or fails to run, so it is required.
const canonicalize: (value: unknown) => string | undefined = createRequire(import.meta.url)("canonicalize");

/** JSON with sorted keys and no spaces (RFC 8785): equal values give equal text. */
export function canonicalJson(value: unknown): string {
  return canonicalize(value) ?? "null";
}

/** SHA-256 of the canonical JSON, in hex: the address of a value by its content. */
export function contentKey(value: unknown): string {
  return createHash("sha256").update(canonicalJson(value), "utf8").digest("hex");
}
