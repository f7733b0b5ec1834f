import { inspect } from "node:util";
import { RootstepError } from "../errors.ts";

const REDACTED = "[redacted]";

/**
 * A secret that does not show itself: printing, JSON and `util.inspect` give `[redacted]`, so a key inside a model or
 * a configuration cannot reach a log or a manifest by accident. Only `reveal()` gives it, at the place that sends it.
 */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return REDACTED;
  }

  toJSON(): string {
    return REDACTED;
  }

  [inspect.custom](): string {
    return REDACTED;
  }
}

/** The environment as a parameter, so that tests pass their own. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The first of these variables that is set and not blank.
 * @throws RootstepError KEY_MISSING naming the variables; CONFIG_INVALID where the value cannot stand in an HTTP header
 */
export function keyFromEnvironment(names: readonly string[], environment: Environment): Secret {
  for (const name of names) {
    const value = environment[name]?.trim();
    if (value === undefined || value === "") continue;
    // undici quotes an invalid header value in its own error: stop such a key before it gets there.
    if (!/^[\x21-\x7e]+$/.test(value)) {
      throw new RootstepError("CONFIG_INVALID", {
        what: `The environment variable ${name} holds spaces, line breaks or characters that a key cannot have`,
        where: `environment ${name}`,
        hint: "Set the variable again, to the key alone.",
      });
    }
    return new Secret(value);
  }
  throw new RootstepError("KEY_MISSING", {
    what: `No API key: ${names.join(" or ")} is not set`,
    where: `environment ${names.join(", ")}`,
  });
}

/** Shorter strings are placeholders such as "x"; striking them out would only garble messages. */
const SHORTEST_SECRET = 4;

/** The text with every secret struck out, also where it stands URL-encoded, in JSON or in base64. */
export function redact(text: string, secrets: readonly Secret[]): string {
  let clean = text;
  for (const secret of secrets) {
    const value = secret.reveal();
    if (value.length < SHORTEST_SECRET) continue;
    const forms = [value, encodeURIComponent(value), JSON.stringify(value).slice(1, -1), btoaUtf8(value)];
    for (const form of new Set(forms)) clean = clean.replaceAll(form, REDACTED);
  }
  return clean;
}

const btoaUtf8 = (value: string): string => Buffer.from(value, "utf8").toString("base64");

/**
 * A cause that is safe to print: name, code and redacted message of an error and of its own causes. Foreign errors
 * carry requests, headers and bodies as properties; none of these survive.
 */
export function redactedCause(error: unknown, secrets: readonly Secret[], depth = 0): Error | undefined {
  if (error === undefined || error === null || depth > 4) return undefined;
  if (!(error instanceof Error)) return new Error(redact(String(error), secrets).slice(0, 500));
  const cause = redactedCause(error.cause, secrets, depth + 1);
  const copy = new Error(redact(error.message, secrets).slice(0, 500), cause === undefined ? undefined : { cause });
  copy.name = error.name;
  copy.stack = `${copy.name}: ${copy.message}`;
  return "code" in error && typeof error.code === "string" ? Object.assign(copy, { code: error.code }) : copy;
}
