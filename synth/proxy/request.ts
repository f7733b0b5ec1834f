import { hash } from "node:crypto";
import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import { isRecord } from "../../src/is-record.ts";
import type { Endpoint, StoredCall } from "../tape/folder-schema.ts";
import { maskText } from "../tape/masks.ts";

export interface Lane {
  readonly name: string;
  readonly by: StoredCall["laneBy"];
}

/** A request of the program, read whole and let in. */
export interface ProxyRequest {
  readonly endpoint: Endpoint;
  /** Below the upstream's base URL: `/chat/completions`. */
  readonly path: string;
  /** With its `?`, or empty. */
  readonly query: string;
  readonly headers: IncomingHttpHeaders;
  /** Uncompressed. */
  readonly body: Buffer;
  readonly lane: Lane;
  /** x-stainless-retry-count of the OpenAI libraries; 0 where there is none. */
  readonly retry: number;
}

export type Handler = (request: ProxyRequest, response: ServerResponse) => void;

/** What the client's key says: nothing (the run's own token), or which agent asks. */
export type KeyLane = { readonly agent: string } | undefined;

/** Which agent asks: by the URL, else by its key, else by its system prompt. No header names the agent. */
export function laneOf(urlAgent: string | undefined, key: KeyLane, endpoint: Endpoint, body: Buffer): Lane {
  if (urlAgent !== undefined) return { name: urlAgent, by: "url" };
  if (key !== undefined) return { name: key.agent, by: "key" };
  const prompt = endpoint === "models" ? undefined : systemPrompt(body);
  if (prompt === undefined) return { name: "agent", by: "unnamed" };
  // Masked: a prompt that tells the time is still the same agent's.
  return { name: `prompt-${hash("sha256", maskText(prompt).text).slice(0, 8)}`, by: "prompt" };
}

/** The first system or developer message, or the `instructions` of a Responses request. */
function systemPrompt(body: Buffer): string | undefined {
  const value = parsedObject(body);
  if (value === undefined) return undefined;
  if (typeof value.instructions === "string") return value.instructions;
  const messages = Array.isArray(value.messages) ? value.messages : Array.isArray(value.input) ? value.input : [];
  const first: unknown = messages.find((message: unknown) => {
    const role = field(message, "role");
    return role === "system" || role === "developer";
  });
  const content = field(first, "content");
  if (content === undefined) return undefined;
  return typeof content === "string" ? content : JSON.stringify(content);
}

export function parsedObject(body: Buffer): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(body.toString("utf8"));
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined; // the upstream says what is wrong with it
  }
}

export function field(value: unknown, name: string): unknown {
  return isRecord(value) ? value[name] : undefined;
}
