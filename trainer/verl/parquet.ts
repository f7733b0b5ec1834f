import { parquetWriteBuffer, type SchemaElement } from "hyparquet-writer";

/** One prompt of a verl data set. */
export interface VerlRow {
  readonly data_source: string;
  readonly prompt: readonly { readonly role: string; readonly content: string }[];
  readonly ability: string;
  readonly reward_model: { readonly style: string; readonly ground_truth: string };
  readonly extra_info: { readonly split: string; readonly index: number; readonly id: string };
}

const text = (name: string): SchemaElement => ({
  name,
  type: "BYTE_ARRAY",
  converted_type: "UTF8",
  repetition_type: "REQUIRED",
});
const struct = (name: string, fields: readonly SchemaElement[]): SchemaElement[] => [
  { name, repetition_type: "REQUIRED", num_children: fields.length },
  ...fields,
];

/** The nested schema that verl's RLHFDataset reads, written out: nothing is left to detection. */
const SCHEMA: SchemaElement[] = [
  { name: "root", num_children: 5 },
  text("data_source"),
  { name: "prompt", repetition_type: "REQUIRED", converted_type: "LIST", num_children: 1 },
  { name: "list", repetition_type: "REPEATED", num_children: 1 },
  ...struct("element", [text("role"), text("content")]),
  text("ability"),
  ...struct("reward_model", [text("style"), text("ground_truth")]),
  ...struct("extra_info", [text("split"), { name: "index", type: "INT64", repetition_type: "REQUIRED" }, text("id")]),
];

/** The rows as a Parquet file. */
export function verlParquet(rows: readonly VerlRow[]): Uint8Array {
  const column = <K extends keyof VerlRow>(name: K) => ({ name, data: rows.map((row) => row[name]) });
  const buffer = parquetWriteBuffer({
    schema: SCHEMA,
    columnData: [
      column("data_source"),
      column("prompt"),
      column("ability"),
      column("reward_model"),
      { name: "extra_info", data: rows.map(({ extra_info }) => ({ ...extra_info, index: BigInt(extra_info.index) })) },
    ],
  });
  return new Uint8Array(buffer);
}
