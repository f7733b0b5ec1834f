import type { Secret } from "../../src/models/key.ts";
import { createRedactor, type Redactor } from "../tape/redact.ts";

export interface RunSecrets {
  /** The run's. */
  readonly token: string;
  readonly upstreamKey?: Secret | undefined;
  /** What the program sees: keys of its tools are in there. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

const NAME_OF_SECRET = /(?:^|_)(?:API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD)$/iu;

/** Shorter ones are placeholders, or words that a prompt may hold. */
const SHORTEST = 16;

/** Strikes out the run's token, the upstream's key and every key in the program's environment. */
export function runRedactor({ token, upstreamKey, env }: RunSecrets): Redactor {
  const fromEnvironment = Object.entries(env).flatMap(([name, value]) =>
    value !== undefined && value.length >= SHORTEST && NAME_OF_SECRET.test(name) ? [value] : [],
  );
  return createRedactor([token, ...(upstreamKey === undefined ? [] : [upstreamKey.reveal()]), ...fromEnvironment]);
}
