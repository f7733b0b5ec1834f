import { jsonObjects, keyName } from "./json-objects.ts";

/** Named fields read from an output; of several values of a field the last one counts. */
export interface FieldReading<Name extends string> {
  readonly path: "json" | "markdown" | "labelled-lines";
  readonly last: Readonly<Partial<Record<Name, string>>>;
  /** Every value of each field, in order. */
  readonly every: ReadonlyMap<Name, readonly string[]>;
}

/**
 * Reads fields by their labels: from JSON objects (nested ones too) where one has such a key, else from lines like
 * `Verdict: yes`, `**Verdict:** yes` or a heading `## Prediction`. The value of a line goes on to the next known label.
 *
 * @param keys per field the labels it goes by, in the form of `keyName`: lower-case letters only
 * @returns undefined where the output has none of the fields
 */
export function readFields<Name extends string>(
  text: string,
  keys: Readonly<Record<Name, readonly string[]>>,
): FieldReading<Name> | undefined {
  const names = new Map<string, Name>();
  for (const name in keys) for (const key of keys[name]) names.set(key, name);

  const found: { readonly name: Name; readonly value: string }[] = [];
  for (const { value } of jsonObjects(text)) collect(value, names, found);
  if (found.length > 0) return reading("json", found);

  let markdown = false;
  let open: { readonly name: Name; lines: string[] } | undefined;
  const close = (): void => {
    if (open !== undefined) found.push({ name: open.name, value: bare(open.lines.join("\n")) });
  };
  for (const line of text.split("\n")) {
    const label = labelOf(line);
    const name = label === undefined ? undefined : names.get(keyName(label.label));
    if (label === undefined || name === undefined) {
      open?.lines.push(line);
      continue;
    }
    close();
    open = { name, lines: [label.value] };
    markdown ||= label.markdown;
  }
  close();
  return found.length === 0 ? undefined : reading(markdown ? "markdown" : "labelled-lines", found);
}

function reading<Name extends string>(
  path: FieldReading<Name>["path"],
  found: readonly { readonly name: Name; readonly value: string }[],
): FieldReading<Name> {
  const every = new Map<Name, string[]>();
  const last: Partial<Record<Name, string>> = {};
  for (const { name, value } of found) {
    every.set(name, [...(every.get(name) ?? []), value]);
    last[name] = value;
  }
  return { path, last, every };
}

function collect<Name extends string>(
  value: unknown,
  names: ReadonlyMap<string, Name>,
  found: { readonly name: Name; readonly value: string }[],
): void {
  if (typeof value !== "object" || value === null) return;
  for (const [key, inner] of Object.entries(value)) {
    const name = names.get(keyName(key));
    const text = plain(inner);
    if (name !== undefined && text !== undefined) found.push({ name, value: text });
    else collect(inner, names, found);
  }
}

/** A JSON value as the text it stands for; lists of text line by line. Objects and null are none. */
function plain(value: unknown): string | undefined {
  switch (typeof value) {
    case "string":
      return value;
    case "number":
      return String(value);
    case "boolean":
      return value ? "yes" : "no";
    default: {
      if (!Array.isArray(value)) return undefined;
      const lines = value.map(plain);
      return lines.includes(undefined) ? undefined : lines.join("\n");
    }
  }
}

/** The part of a line in which a label can stand. */
const LABEL_WINDOW = 120;
// `Verdict: yes`, `2. **Verdict**: yes`, `- "verdict" = yes`; a heading or a bold line needs no colon.
const LABEL = /^\s*(?:(#+|[-*•>]+|[0-9]+[.)])\s+)?(["'`*_]*)([a-z][a-z _-]{0,40})(["'`*_]*)[^\S\n]*(?:([:=])(.*))?$/isu;

function labelOf(line: string): { label: string; value: string; markdown: boolean } | undefined {
  const match = LABEL.exec(line.slice(0, LABEL_WINDOW));
  if (match === null) return undefined;
  const [, lead = "", before = "", label = "", after = "", separator, value = ""] = match;
  const heading = lead.startsWith("#");
  const bold = before.includes("*") || after.includes("*") || /^\s*\*+/u.test(value);
  if (separator === undefined && !heading && !bold) return undefined;
  return { label, value: value + line.slice(LABEL_WINDOW), markdown: heading || bold };
}

/** Without markup and quotes around the whole. */
function bare(value: string): string {
  return value.trim().replace(/^[\s*`"'“”_]+|[\s*`"'“”,]+$/gu, "");
}
