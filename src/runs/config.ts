import { existsSync, readFileSync } from "node:fs";
import { type Document, isMap, isNode, isScalar, LineCounter, parseDocument, parse as parseYaml } from "yaml";
import { z } from "zod";
import { RootstepError } from "../errors.ts";
import { isRecord } from "../is-record.ts";

/** A setting's place in the schema, as flags and environment name it. */
export interface Setting {
  /** Dotted path: `search.alpha`. */
  readonly path: string;
  readonly type: "string" | "number" | "boolean" | "array" | "object";
  readonly description: string | undefined;
  readonly default: unknown;
  readonly choices: readonly string[] | undefined;
}

interface JsonSchema {
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
}

/** The settings of a schema, flattened, in the order of the schema. Built from its JSON Schema, so there is one truth. */
export function settingsOf(schema: z.ZodType): Setting[] {
  const root = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }) as JsonSchema;
  const settings: Setting[] = [];
  const walk = (node: JsonSchema, path: string): void => {
    for (const branch of node.anyOf ?? node.oneOf ?? []) walk(branch, path);
    for (const [key, child] of Object.entries(node.properties ?? {})) {
      const childPath = path === "" ? key : `${path}.${key}`;
      const nested =
        child.properties !== undefined || (child.anyOf ?? child.oneOf ?? []).some((b) => b.properties !== undefined);
      if (nested) walk(child, childPath);
      else if (!settings.some((known) => known.path === childPath)) settings.push(settingOf(childPath, child));
    }
  };
  walk(root, "");
  return settings;
}

function settingOf(path: string, node: JsonSchema): Setting {
  const raw = typeof node.type === "string" ? node.type : (node.type?.[0] ?? (node.enum ? "string" : "object"));
  const type = raw === "integer" ? "number" : raw;
  return {
    path,
    type: type === "string" || type === "number" || type === "boolean" || type === "array" ? type : "object",
    description: node.description,
    default: node.default,
    choices: node.enum?.filter((choice) => typeof choice === "string"),
  };
}

/** `search.maxBlocks` of verb synth → ROOTSTEP_SYNTH_SEARCH_MAX_BLOCKS. */
export function environmentName(verb: string, path: string): string {
  const snake = path
    .replace(/\./gu, "_")
    .replace(/([a-z0-9])([A-Z])/gu, "$1_$2")
    .replace(/-/gu, "_");
  return `ROOTSTEP_${verb}_${snake}`.toUpperCase();
}

/** `search.maxBlocks` → `search.max-blocks`, to be given as `--search.max-blocks`. */
export function flagName(path: string): string {
  return path
    .replace(/([a-z0-9])([A-Z])/gu, "$1-$2")
    .replace(/[A-Z](?=[a-z])|(?<=-)[A-Z]/gu, (letter) => letter.toLowerCase());
}

export interface ConfigSources {
  readonly verb: string;
  readonly file?: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Flags given on the command line, nested as the schema is. */
  readonly flags: Readonly<Record<string, unknown>>;
}

/**
 * One configuration from YAML file < environment < flags, checked once against one schema.
 *
 * @throws RootstepError FILE_MISSING, CONFIG_UNREADABLE (YAML syntax, with line), CONFIG_INVALID (unknown key, wrong
 * type: names file:line, variable or flag)
 */
export function loadConfig<T>(schema: z.ZodType<T>, sources: ConfigSources): T {
  const settings = settingsOf(schema);
  const origin = new Map<string, string>();
  const merged: Record<string, unknown> = {};
  const yaml = sources.file === undefined ? undefined : readYaml(sources.file);
  if (yaml !== undefined) mergeInto(merged, yaml.value, "", () => {});
  for (const setting of settings) {
    const name = environmentName(sources.verb, setting.path);
    const text = sources.env[name];
    if (text === undefined || text === "") continue;
    setPath(merged, setting.path, setting.type === "string" ? text : readScalar(text));
    origin.set(setting.path, `environment variable ${name}`);
  }
  mergeInto(merged, sources.flags, "", (path) => origin.set(path, `flag --${flagName(path)}`));
  const parsed = schema.safeParse(merged);
  if (parsed.success) return parsed.data;
  throw new RootstepError("CONFIG_INVALID", {
    what: parsed.error.issues.map((issue) => describeIssue(issue)).join("; "),
    where: parsed.error.issues
      .map((issue) => whereOf(issuePath(issue), origin, yaml, sources))
      .filter((where, index, all) => all.indexOf(where) === index)
      .join("; "),
  });
}

function issuePath(issue: z.core.$ZodIssue): readonly PropertyKey[] {
  const firstUnknown = issue.code === "unrecognized_keys" ? issue.keys[0] : undefined;
  return firstUnknown === undefined ? issue.path : [...issue.path, firstUnknown];
}

function describeIssue(issue: z.core.$ZodIssue): string {
  const path = issue.path.join(".");
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) => `unknown key "${path === "" ? key : `${path}.${key}`}"`).join(", ");
  }
  return `${path === "" ? "configuration" : path}: ${issue.message}`;
}

function whereOf(
  path: readonly PropertyKey[],
  origin: ReadonlyMap<string, string>,
  yaml: ReturnType<typeof readYaml> | undefined,
  sources: ConfigSources,
): string {
  const dotted = path.join(".");
  const named = origin.get(dotted);
  if (named !== undefined) return named;
  const line = yaml === undefined ? undefined : lineOf(yaml, path);
  if (line !== undefined) return `${sources.file}:${line} ${dotted}`;
  return `setting ${dotted} (flag --${flagName(dotted)} or ${environmentName(sources.verb, dotted)})`;
}

function lineOf(
  { document, lines }: { document: Document; lines: LineCounter },
  path: readonly PropertyKey[],
): number | undefined {
  const parent: unknown = path.length === 1 ? document.contents : document.getIn(path.slice(0, -1), true);
  if (!isMap(parent)) return undefined;
  const key: unknown = parent.items.find((pair) => isScalar(pair.key) && pair.key.value === path.at(-1))?.key;
  return isNode(key) && key.range ? lines.linePos(key.range[0]).line : undefined;
}

function readYaml(file: string): { value: Record<string, unknown>; document: Document; lines: LineCounter } {
  if (!existsSync(file))
    throw new RootstepError("FILE_MISSING", { what: "the configuration file does not exist", where: file });
  const lines = new LineCounter();
  const document = parseDocument(readFileSync(file, "utf8"), { lineCounter: lines });
  const fault = document.errors[0];
  if (fault !== undefined) {
    const line = lines.linePos(fault.pos[0]).line;
    throw new RootstepError("CONFIG_UNREADABLE", {
      what: fault.message.split("\n")[0] ?? "bad YAML",
      where: `${file}:${line}`,
    });
  }
  const value: unknown = document.toJS() ?? {};
  if (!isRecord(value)) {
    throw new RootstepError("CONFIG_UNREADABLE", {
      what: "the file must hold a mapping of settings",
      where: `${file}:1`,
    });
  }
  return { value, document, lines };
}

function readScalar(text: string): unknown {
  try {
    return parseYaml(text);
  } catch {
    return text; // the schema will name the variable and say what it expected
  }
}

function mergeInto(
  target: Record<string, unknown>,
  source: Readonly<Record<string, unknown>>,
  path: string,
  onLeaf: (path: string) => void,
): void {
  for (const [key, value] of Object.entries(source)) {
    if (value === undefined) continue;
    const here = path === "" ? key : `${path}.${key}`;
    if (isRecord(value)) {
      const existing = target[key];
      const child: Record<string, unknown> = isRecord(existing) ? existing : {};
      target[key] = child;
      mergeInto(child, value, here, onLeaf);
    } else {
      target[key] = value;
      onLeaf(here);
    }
  }
}

/** Sets a dotted path in a nested record, making records on the way. */
export function setPath(target: Record<string, unknown>, path: string, value: unknown): void {
  const [head = "", ...rest] = path.split(".");
  if (rest.length === 0) {
    target[head] = value;
    return;
  }
  const existing = target[head];
  const child: Record<string, unknown> = isRecord(existing) ? existing : {};
  target[head] = child;
  setPath(child, rest.join("."), value);
}
