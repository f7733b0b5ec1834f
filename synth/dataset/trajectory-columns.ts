import type { Field } from "./columns.ts";

type Kind = "text" | "integer" | "number" | "boolean" | "json";

const one = (kind: Kind, name: string): Field => ({ name, kind });
const maybe = (kind: Kind, name: string): Field => ({ name, kind, optional: true });
const struct = (name: string, fields: readonly Field[], optional = false): Field => ({
  name,
  kind: "struct",
  fields,
  optional,
});
const list = (name: string, element: readonly Field[] | Kind): Field => ({
  name,
  kind: "list",
  element: typeof element === "string" ? one(element, "element") : struct("element", element),
});

/** TracerTraj as Parquet columns: the fields of the JSON Lines under the same names. What has no fixed shape is JSON text. */
export const TRAJECTORY_COLUMNS: readonly Field[] = [
  one("integer", "schemaVersion"),
  one("text", "id"),
  struct("task", [
    one("text", "id"),
    one("text", "text"),
    maybe("text", "referenceAnswer"),
    maybe("text", "referenceSolution"),
    one("text", "source"),
    one("text", "groupId"),
    maybe("json", "extra"),
  ]),
  one("text", "system"),
  one("text", "stepPolicy"),
  list("steps", [
    one("integer", "index"),
    one("text", "agent"),
    maybe("text", "role"),
    one("text", "kind"),
    one("text", "content"),
    list("toolCalls", [
      one("text", "id"),
      one("text", "name"),
      one("text", "arguments"),
      maybe("text", "result"),
      maybe("text", "error"),
      maybe("text", "startedAt"),
      maybe("text", "endedAt"),
      maybe("boolean", "emptyIsValid"),
      maybe("json", "extra"),
    ]),
    list("retrieved", [one("text", "id"), one("text", "text"), maybe("number", "score"), maybe("text", "source")]),
    list("callIds", "text"),
    struct("usage", [one("integer", "promptTokens"), one("integer", "completionTokens")], true),
    maybe("text", "startedAt"),
    maybe("text", "endedAt"),
    maybe("json", "extra"),
  ]),
  struct("outcome", [
    one("boolean", "success"),
    maybe("text", "answer"),
    one("text", "checker"),
    maybe("text", "detail"),
  ]),
  list("labels", [
    one("text", "agent"),
    one("integer", "step"),
    one("text", "source"),
    maybe("text", "verdict"),
    maybe("text", "evidenceRef"),
    maybe("number", "confidence"),
    maybe("text", "annotator"),
    maybe("text", "reason"),
    maybe("text", "createdAt"),
    maybe("json", "extra"),
  ]),
  struct("provenance", [
    one("text", "kind"),
    maybe("text", "model"),
    one("boolean", "simulated"),
    maybe("text", "format"),
    maybe("text", "file"),
    maybe("json", "seed"),
    list("conversions", "text"),
    maybe("json", "extra"),
  ]),
  maybe("json", "extra"),
];
