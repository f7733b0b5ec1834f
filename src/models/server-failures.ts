import { z } from "zod";
import { RootstepError } from "../errors.ts";
import { isRecord } from "../is-record.ts";
import { redact, redactedCause, type Secret } from "./key.ts";

/** Where a call goes, and what must not be printed about it. */
export interface CallPlace {
  /** Public URL, without query. */
  readonly where: string;
  readonly secrets: readonly Secret[];
}

const LONGEST_QUOTE = 400;

/** A few words of what the server sent, on one line, without secrets. */
export function quote(text: string, secrets: readonly Secret[]): string {
  // Redacted before it is shortened: a cut secret would not be found.
  const line = redact(text, secrets).replace(/\s+/g, " ").trim();
  return line.length > LONGEST_QUOTE ? `${line.slice(0, LONGEST_QUOTE)}…` : line;
}

export function looksLikeHtml(text: string): boolean {
  return /^\s*<(!doctype html|html|head|body)\b/i.test(text);
}

/** What servers put into an error: OpenAI's object, vLLM's flat one, FastAPI's detail, a bare string. */
const errorObject = z.object({
  message: z.string().optional().catch(undefined),
  type: z.string().optional().catch(undefined),
  code: z.union([z.number(), z.string()]).optional().catch(undefined),
});
type ErrorObject = z.infer<typeof errorObject>;
const errorBody = z.union([
  z.object({ error: z.string().min(1) }).transform((body): ErrorObject => ({ message: body.error })),
  z.object({ error: errorObject }).transform((body) => body.error),
  z.object({ object: z.literal("error") }).and(errorObject),
]);
const plainMessage = z.union([
  z.object({ message: z.string() }).transform((body) => body.message),
  z.object({ detail: z.string() }).transform((body) => body.detail),
  z.object({ detail: z.array(z.unknown()) }).transform((body) => JSON.stringify(body.detail)),
]);

/** The error that a JSON value of the server is, though it came with status 200 or inside a stream; else undefined. */
export function reportedError(value: unknown, place: CallPlace): RootstepError | undefined {
  // Every answer passes here: one without either mark of an error is none.
  if (!isRecord(value) || (value.error === undefined && value.object !== "error")) return undefined;
  const parsed = errorBody.safeParse(value);
  if (!parsed.success) return undefined;
  const { message, type, code } = parsed.data;
  const status = Number(code);
  if (Number.isInteger(status) && status >= 400 && status <= 599) {
    return statusError({ status, body: JSON.stringify(value), retryAfterMs: undefined }, place);
  }
  const kind = `${type ?? ""} ${code ?? ""}`;
  const name = /rate.?limit/i.test(kind)
    ? "MODEL_RATE_LIMITED"
    : /invalid|bad.?request|validation/i.test(kind)
      ? "MODEL_REFUSED_REQUEST"
      : "MODEL_SERVER_ERROR";
  return new RootstepError(name, {
    what: `The model server reported an error: ${quote(message ?? JSON.stringify(value), place.secrets)}`,
    where: place.where,
  });
}

function messageOf(body: string, secrets: readonly Secret[]): { text: string; code: string } {
  if (body.trim() === "") return { text: "", code: "" };
  if (looksLikeHtml(body)) return { text: ": an HTML page", code: "" };
  try {
    const json: unknown = JSON.parse(body);
    const error = errorBody.safeParse(json);
    const plain = plainMessage.safeParse(json);
    const message = (error.success ? error.data.message : undefined) ?? (plain.success ? plain.data : body);
    const code = error.success ? `${error.data.type ?? ""} ${error.data.code ?? ""}` : "";
    return { text: `: ${quote(message, secrets)}`, code };
  } catch {
    return { text: `: ${quote(body, secrets)}`, code: "" };
  }
}

export interface FailedStatus {
  readonly status: number;
  /** The error's body as far as it could be read. */
  readonly body: string;
  readonly retryAfterMs: number | undefined;
}

/** The catalogue error of an HTTP status from 400 on. */
export function statusError({ status, body, retryAfterMs }: FailedStatus, place: CallPlace): RootstepError {
  const { text, code } = messageOf(body, place.secrets);
  const details = { what: `The model server answered HTTP ${status}${text}`, where: place.where, retryAfterMs, status };
  if (status === 401 || status === 403) return new RootstepError("MODEL_AUTH", details);
  if (status === 402 || (status === 429 && /insufficient_quota|billing/i.test(code))) {
    const hint = "The account has no credit left: top it up or use another key; waiting does not help.";
    return new RootstepError("MODEL_REFUSED_REQUEST", { ...details, hint });
  }
  if (status === 429) return new RootstepError("MODEL_RATE_LIMITED", details);
  if (status === 408) return new RootstepError("MODEL_TIMEOUT", details);
  if (status >= 500) return new RootstepError("MODEL_SERVER_ERROR", details);
  const hint =
    status === 404 ? "Check the model name, and that the base URL ends where the API begins (often /v1)." : undefined;
  return new RootstepError("MODEL_REFUSED_REQUEST", { ...details, hint });
}

/**
 * Milliseconds that `Retry-After` (seconds or an HTTP date) or `retry-after-ms` asks to wait; undefined without one.
 * @param now milliseconds since the epoch
 */
export function retryAfterMs(header: (name: string) => string | null, now: number): number | undefined {
  const milliseconds = header("retry-after-ms")?.trim();
  if (milliseconds !== undefined && /^\d+(\.\d+)?$/.test(milliseconds)) return Number(milliseconds);
  const value = header("retry-after")?.trim();
  if (value === undefined || value === "") return undefined;
  if (/^\d+(\.\d+)?$/.test(value)) return Number(value) * 1000;
  const date = Date.parse(value);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

/** The code of an error or of the nearest cause that has one (`fetch failed` hides it in its cause). */
function systemCode(error: unknown): string {
  for (let current = error, depth = 0; current instanceof Error && depth < 5; current = current.cause, depth++) {
    if ("code" in current && typeof current.code === "string") return current.code;
    if (current.name === "HTTPParserError") return "HPE_INVALID"; // undici 7 loses the parser's own code
    if (current instanceof AggregateError && current.errors.length > 0) return systemCode(current.errors[0]);
  }
  return "";
}

/** What a connection's failure means; INTERNAL for what is none. `answered`: the server had begun to answer. */
export function networkError(error: unknown, answered: boolean, place: CallPlace): RootstepError {
  const code = systemCode(error);
  const details = { where: place.where, cause: redactedCause(error, place.secrets) };
  const message = error instanceof Error ? error.message : String(error);
  // undici's two names for a broken connection; anything else without a code is a fault in the program.
  if (code === "" && message !== "fetch failed" && message !== "terminated") {
    return new RootstepError("INTERNAL", { ...details, what: quote(message, place.secrets) });
  }
  const label = code === "" ? "" : ` (${code})`;
  if (/TIMEOUT|ETIMEDOUT/.test(code)) {
    const what = `The model server gave no ${answered ? "further data" : "connection or answer"} in time${label}`;
    return new RootstepError("MODEL_TIMEOUT", { ...details, what });
  }
  if (answered) {
    const what = `The connection to the model server broke in the middle of its answer${label}`;
    return new RootstepError("MODEL_STREAM_CUT", { ...details, what });
  }
  if (/^HPE_|^UND_ERR_HEADERS_OVERFLOW/.test(code)) {
    return new RootstepError("MODEL_BAD_BODY", { ...details, what: `What answers there does not speak HTTP${label}` });
  }
  const reason =
    code === "ECONNREFUSED"
      ? "nothing listens there"
      : code === "ENOTFOUND" || code === "EAI_AGAIN"
        ? "its host name is not known"
        : /CERT|SSL|TLS|SELF_SIGNED/.test(code)
          ? "its TLS certificate or protocol was not accepted"
          : "the connection broke before an answer";
  return new RootstepError("MODEL_UNREACHABLE", {
    ...details,
    what: `The model server is unreachable: ${reason}${label}`,
  });
}
