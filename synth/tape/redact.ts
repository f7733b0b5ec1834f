const REDACTED = "[redacted]";

/** Fields that hold a secret wherever they stand: JSON bodies (nested in strings too), queries, forms. */
const SECRET_FIELD =
  "(?:x[-_])?api[-_]?key|authorization|proxy[-_]authorization|cookie|set[-_]cookie|access[-_]?token|refresh[-_]?token|id[-_]?token|auth[-_]?token|client[-_]?secret|secret[-_]?key|private[-_]?key|password|passwd|secret|session[-_]?token|subscription[-_]?key|signature|sig";

/** Inside a JSON string the quotes are escaped, in a string in that string twice. */
const JSON_FIELD = new RegExp(`(\\\\*"(?:${SECRET_FIELD})\\\\*"\\s*:\\s*\\\\*")((?:[^"\\\\]|\\\\[^"\\\\])+)`, "giu");
const QUERY_FIELD = new RegExp(`([?&](?:${SECRET_FIELD}|key|token)=)[^&#\\s"']+`, "giu");

/** Keys known by their look: OpenAI, Anthropic, Hugging Face, GitHub, Slack, AWS, Google, and bearer tokens. */
const KEYS =
  /(?<![A-Za-z0-9])(?:sk-[A-Za-z0-9_-]{20,}|hf_[A-Za-z0-9]{20,}|gh[pousr]_[A-Za-z0-9]{30,}|xox[abprs]-[A-Za-z0-9-]{10,}|AKIA[0-9A-Z]{16}|AIza[A-Za-z0-9_-]{35})(?![A-Za-z0-9])|(?<=\bBearer )[A-Za-z0-9._~+/-]{16,}=*/gu;

/** What has to stand in a text for the patterns above to find anything: one quick search passes nearly every text. */
const SIGNS =
  '(?:key|token|secret|passw(?:or)?d|authorization|cookie|sig|signature)(?:\\\\*"\\s*:|=)|(?<![a-z0-9])sk-|hf_|gh[pousr]_|xox|AKIA|AIza|Bearer ';

/** Takes secrets out of text. */
export type Redactor = (text: string) => string;

/** Shorter ones are placeholders such as "x". */
const SHORTEST_SECRET = 6;

/**
 * What goes on a tape goes through this: known secrets (the run's token, the upstream's key), secret fields by name, keys
 * by their look. A replayed request goes through it before it is matched, so that redaction never parts the two.
 */
export function createRedactor(secrets: readonly string[]): Redactor {
  const known = secrets
    .filter((secret) => secret.length >= SHORTEST_SECRET)
    .flatMap((secret) => [secret, encodeURIComponent(secret), Buffer.from(secret, "utf8").toString("base64")]);
  const signs = new RegExp([...known.map(escaped), SIGNS].join("|"), "iu");
  return (text) => {
    if (!signs.test(text)) return text;
    let clean = text;
    for (const secret of known) if (clean.includes(secret)) clean = clean.replaceAll(secret, REDACTED);
    return clean.replace(JSON_FIELD, `$1${REDACTED}`).replace(QUERY_FIELD, `$1${REDACTED}`).replace(KEYS, REDACTED);
  };
}

const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/]/gu, "\\$&");

/** Request headers that a tape keeps: what the answer may depend on and what tells a retry. */
const KEPT_REQUEST_HEADERS = /^(?:accept|content-type|user-agent|openai-beta|x-stainless-.*)$/u;

/** Response headers that belong to one connection or name somebody; the rest is replayed. */
const DROPPED_RESPONSE_HEADERS =
  /^(?:connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|content-length|content-encoding|date|set-cookie|authorization|www-authenticate|.*(?:api-?key|token|secret).*|openai-organization|openai-project|cf-.*|alt-svc|strict-transport-security)$/u;

type HeaderValues = Readonly<Record<string, string | readonly string[] | undefined>>;

export function keptRequestHeaders(headers: HeaderValues, redact: Redactor): Record<string, string> {
  return kept(headers, (name) => KEPT_REQUEST_HEADERS.test(name), redact);
}

export function keptResponseHeaders(headers: HeaderValues, redact: Redactor): Record<string, string> {
  // x-ratelimit-limit-tokens counts tokens of text; it is no secret.
  return kept(headers, (name) => name.startsWith("x-ratelimit-") || !DROPPED_RESPONSE_HEADERS.test(name), redact);
}

function kept(headers: HeaderValues, keep: (name: string) => boolean, redact: Redactor): Record<string, string> {
  const found: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined && keep(name)) found[name] = redact(typeof value === "string" ? value : value.join(", "));
  }
  return found;
}
