import { hash } from "node:crypto";
import { canonicalJson } from "../../src/models/content-key.ts";
import { redactedBody } from "../proxy/call-log.ts";
import { bodyAddress } from "../tape/bodies.ts";
import type { StoredToolExchange } from "../tape/folder-schema.ts";
import type { Asked } from "../tape/matcher.ts";
import type { Redactor } from "../tape/redact.ts";
import { withoutRpcIds } from "./json-rpc.ts";
import { sessionOf, type ToolRequest } from "./tool-request.ts";

/** What a request to a tool asks, as far as matching goes: no headers, which belong to the connection or hold keys. */
export interface ToolQuestion {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly session: string | undefined;
  readonly body: Buffer;
}

/** Its canonical JSON: the body parsed where it is JSON, without the ids of JSON-RPC. */
export function toolText({ method, path, query, session, body }: ToolQuestion): string {
  return canonicalJson({ method, path, query, ...(session === undefined ? {} : { session }), body: content(body) });
}

function content(body: Buffer): unknown {
  const text = body.toString("utf8");
  try {
    return withoutRpcIds(JSON.parse(text));
  } catch {
    return text.includes("\uFFFD") ? { base64: body.toString("base64") } : text;
  }
}

/** L0 identity of a request to a tool. */
export function toolKey(question: ToolQuestion): string {
  return keyOf(toolText(question));
}

const keyOf = (text: string): string => hash("sha256", `tool\n${text}`);

/** Requests to one tool by one agent are one lane. */
export function toolLane(tool: string, agent: string | undefined): string {
  return `tool:${tool}${agent === undefined ? "" : `@${agent}`}`;
}

export function rawKey({ method, path, query, session }: ToolQuestion, body: string): string {
  return `${method} ${path}${query} ${session ?? ""} ${body}`;
}

/** The question of a request, without secrets. */
export function questionOf(request: ToolRequest, redact: Redactor): ToolQuestion {
  const { method, path, query, body } = request;
  return {
    method,
    path: redact(path),
    query: redact(query),
    session: sessionOf(request),
    body: redactedBody(body, redact),
  };
}

/** The question as it stands on tape. */
export function storedQuestion({ request, session }: StoredToolExchange, body: Buffer): ToolQuestion {
  return { method: request.method, path: request.path, query: request.query ?? "", session, body };
}

/** What the matcher has to know of a request to a tool. */
export function askedOfTool(question: ToolQuestion, lane: string): Asked {
  let text: string | undefined;
  const canonical = (): string => {
    text ??= toolText(question);
    return text;
  };
  return { lane, raw: rawKey(question, bodyAddress(question.body)), key: () => keyOf(canonical()), text: canonical };
}
