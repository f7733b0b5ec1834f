import { hash } from "node:crypto";
import { canonicalJson } from "../../src/models/content-key.ts";
import type { Endpoint } from "./folder-schema.ts";

/** The canonical JSON of a request body; a body that is no JSON stands for itself. */
export function canonicalBody(body: Uint8Array): string {
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString("utf8");
  try {
    return canonicalJson(JSON.parse(text));
  } catch {
    return text;
  }
}

/** L0 identity of a request: sha256 of the endpoint and the canonical JSON. */
export function requestKey(endpoint: Endpoint, body: Uint8Array): string {
  return keyOfCanonical(endpoint, canonicalBody(body));
}

export function keyOfCanonical(endpoint: Endpoint, canonical: string): string {
  return hash("sha256", `${endpoint}\n${canonical}`);
}
