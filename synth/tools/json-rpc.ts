import { isRecord } from "../../src/is-record.ts";

/*
 * JSON-RPC as MCP speaks it. Ids and progress tokens are counters of the client: which number a request gets depends on
 * what else it did. They are masked where requests are compared, and put right in recorded answers.
 */

export type RpcMessage = Readonly<Record<string, unknown>>;

/** The messages of a body: one, or a batch; none where it is something else. */
export function rpcMessages(value: unknown): readonly RpcMessage[] {
  const all: readonly unknown[] = Array.isArray(value) ? value : [value];
  const messages = all.filter(isRecord).filter(({ jsonrpc }) => jsonrpc === "2.0");
  return messages.length === all.length ? messages : [];
}

export function isRpcRequest(message: RpcMessage): boolean {
  return typeof message.method === "string" && message.id !== undefined;
}

export function isRpcAnswer(message: RpcMessage): boolean {
  return message.id !== undefined && message.method === undefined;
}

/** The body as it is compared: without the ids that the client counted. */
export function withoutRpcIds(value: unknown): unknown {
  if (rpcMessages(value).length === 0) return value;
  return Array.isArray(value) ? value.map(masked) : masked(value);
}

function masked(message: unknown): unknown {
  if (!isRecord(message)) return message;
  const id = isRpcRequest(message) ? { id: "<id>" } : {};
  if (!isRecord(message.params)) return { ...message, ...id };
  const { _meta: meta, ...params } = message.params;
  const shown: Record<string, unknown> = { ...params };
  if (isRecord(meta)) shown._meta = meta.progressToken === undefined ? meta : { ...meta, progressToken: "<token>" };
  if (message.method === "notifications/cancelled" && params.requestId !== undefined) shown.requestId = "<id>";
  return { ...message, ...id, params: shown };
}

/** Recorded ids and tokens, and what stands for them now. */
export interface RpcIds {
  readonly ids: ReadonlyMap<unknown, unknown>;
  readonly tokens: ReadonlyMap<unknown, unknown>;
}

/** Pairs the ids of two bodies that are equal without them; undefined where all are the same. */
export function pairRpcIds(recorded: unknown, asked: unknown): RpcIds | undefined {
  const ids = new Map<unknown, unknown>();
  const tokens = new Map<unknown, unknown>();
  const now = rpcMessages(asked);
  rpcMessages(recorded).forEach((message, at) => {
    const other = now[at];
    if (other === undefined || !isRpcRequest(message)) return;
    if (message.id !== other.id) ids.set(message.id, other.id);
    const [old, token] = [progressToken(message), progressToken(other)];
    if (old !== token) tokens.set(old, token);
  });
  return ids.size + tokens.size === 0 ? undefined : { ids, tokens };
}

function progressToken({ params }: RpcMessage): unknown {
  return isRecord(params) && isRecord(params._meta) ? params._meta.progressToken : undefined;
}

/** An answer's text with this run's ids: whole JSON, a line of it, or a stream of events. */
export function withRpcIds(text: string, pairs: RpcIds): string {
  const whole = parsed(text);
  if (whole !== undefined) return JSON.stringify(renumbered(whole, pairs));
  return text.replace(/^data: ?(\{.*|\[.*)$/gmu, (line, data: string) => {
    const value = parsed(data);
    return value === undefined ? line : `data: ${JSON.stringify(renumbered(value, pairs))}`;
  });
}

function renumbered(value: unknown, pairs: RpcIds): unknown {
  return Array.isArray(value) ? value.map((message) => renumberedOne(message, pairs)) : renumberedOne(value, pairs);
}

function renumberedOne(message: unknown, { ids, tokens }: RpcIds): unknown {
  if (!isRecord(message)) return message;
  // An id with a method is the server's own request.
  if (isRpcAnswer(message) && ids.has(message.id)) return { ...message, id: ids.get(message.id) };
  if (message.method !== "notifications/progress" || !isRecord(message.params)) return message;
  const { progressToken: token } = message.params;
  return tokens.has(token) ? { ...message, params: { ...message.params, progressToken: tokens.get(token) } } : message;
}

export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
