import type { SchemaElement } from "hyparquet-writer";
import { isRecord } from "../../src/is-record.ts";

/** A column of a Parquet file, or a field of a struct in one. `json`: any value, as JSON text. */
export type Field = {
  readonly name: string;
  readonly optional?: boolean;
} & (
  | { readonly kind: "text" | "integer" | "number" | "boolean" | "json" }
  | { readonly kind: "struct"; readonly fields: readonly Field[] }
  | { readonly kind: "list"; readonly element: Field }
);

/** The schema written out: nothing is left to detection, so an empty split has the same columns as a full one. */
export function schemaOf(fields: readonly Field[]): SchemaElement[] {
  return [{ name: "root", num_children: fields.length }, ...fields.flatMap(elementsOf)];
}

function elementsOf(field: Field): SchemaElement[] {
  const { name } = field;
  const repetition_type = field.optional === true ? "OPTIONAL" : "REQUIRED";
  switch (field.kind) {
    case "text":
    case "json":
      return [{ name, type: "BYTE_ARRAY", converted_type: "UTF8", repetition_type }];
    case "integer":
      return [{ name, type: "INT64", repetition_type }];
    case "number":
      return [{ name, type: "DOUBLE", repetition_type }];
    case "boolean":
      return [{ name, type: "BOOLEAN", repetition_type }];
    case "struct":
      return [{ name, repetition_type, num_children: field.fields.length }, ...field.fields.flatMap(elementsOf)];
    case "list":
      return [
        { name, repetition_type, converted_type: "LIST", num_children: 1 },
        { name: "list", repetition_type: "REPEATED", num_children: 1 },
        ...elementsOf(field.element),
      ];
  }
}

/**
 * A value as the writer takes it. Half of a surrogate pair has no UTF-8: U+FFFD stands in its place.
 * @param onReplaced told for each text that had one
 */
export function toCell(field: Field, value: unknown, onReplaced: () => void): unknown {
  if (value === undefined) return null;
  switch (field.kind) {
    case "json":
      return toCell({ ...field, kind: "text" }, JSON.stringify(value), onReplaced);
    case "text": {
      const text = String(value);
      if (!LONE_SURROGATE.test(text)) return text;
      onReplaced();
      return text.replace(new RegExp(LONE_SURROGATE, "gu"), "\uFFFD");
    }
    case "integer":
      return BigInt(Number(value));
    case "number":
    case "boolean":
      return value;
    case "struct": {
      const record = isRecord(value) ? value : {};
      return Object.fromEntries(
        field.fields.map((inner) => [inner.name, toCell(inner, record[inner.name], onReplaced)]),
      );
    }
    case "list":
      return Array.isArray(value) ? value.map((one) => toCell(field.element, one, onReplaced)) : [];
  }
}

const LONE_SURROGATE = /\p{Surrogate}/u;

/** The value that `toCell` was given; what is null in the file was absent. @throws SyntaxError for text that is not JSON */
export function fromCell(field: Field, cell: unknown): unknown {
  if (cell === null || cell === undefined) return field.kind === "list" ? [] : undefined;
  switch (field.kind) {
    case "json":
      return JSON.parse(String(cell));
    case "integer":
      return Number(cell);
    case "struct": {
      const record = isRecord(cell) ? cell : {};
      const entries = field.fields.map((inner) => [inner.name, fromCell(inner, record[inner.name])] as const);
      return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
    }
    case "list":
      return Array.isArray(cell) ? cell.map((one) => fromCell(field.element, one)) : cell;
    default:
      return cell;
  }
}
