import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { z } from "zod";
import type { Completion } from "../../trainer/engines/engine.ts";
import {
  float32Bytes,
  int32Bytes,
  int64Bytes,
  readFloat32,
  readInt32,
  readInt64,
} from "../../trainer/engines/tinker/arrays.ts";
import {
  ElementType,
  ForwardBackwardOutputSchema,
  ForwardBackwardRequestSchema,
  SampleResponseSchema,
} from "../../trainer/engines/tinker/wire_pb.ts";

/** The server's side of the protocol's two encodings. */
export interface ServedDatum {
  readonly input: readonly number[];
  readonly targets: readonly number[];
  readonly weights: readonly number[];
  readonly advantages: readonly number[] | undefined;
  readonly logprobs: readonly number[] | undefined;
}

export interface ServedForwardBackward {
  readonly modelId: string;
  readonly seqId: number;
  readonly data: readonly ServedDatum[];
  readonly lossFn: string;
  readonly lossFnConfig: Readonly<Record<string, number>>;
  readonly forwardOnly: boolean;
}

export interface ServedWire {
  readonly type: string;
  readForwardBackward(body: Uint8Array, path: string): ServedForwardBackward;
  writeForwardBackward(rows: readonly (readonly number[])[]): Uint8Array;
  writeSamples(completions: readonly Completion[]): Uint8Array;
}

export const protobufWire: ServedWire = {
  type: "application/x-protobuf",
  readForwardBackward(body) {
    const { data, ...request } = fromBinary(ForwardBackwardRequestSchema, body);
    return {
      ...request,
      data: data.map(({ modelInput, lossFnInputs }) => {
        const bytes = (name: string): Uint8Array | undefined => lossFnInputs[name]?.encoding.value;
        const floats = (name: string): number[] | undefined => {
          const found = bytes(name);
          return found && readFloat32(found);
        };
        return {
          input: modelInput.flatMap(({ chunk }) => (chunk.value === undefined ? [] : readInt32(chunk.value.tokens))),
          targets: readInt64(bytes("target_tokens") ?? new Uint8Array()),
          weights: floats("weights") ?? [],
          advantages: floats("advantages"),
          logprobs: floats("logprobs"),
        };
      }),
    };
  },
  writeForwardBackward(rows) {
    const offsets = [0];
    for (const row of rows) offsets.push((offsets.at(-1) ?? 0) + row.length * Float32Array.BYTES_PER_ELEMENT);
    const logprobs = { data: float32Bytes(rows.flat()), offsets: int64Bytes(offsets), dtype: ElementType.FLOAT32 };
    const record = { fields: { logprobs }, numDatums: BigInt(rows.length) };
    return toBinary(ForwardBackwardOutputSchema, create(ForwardBackwardOutputSchema, { lossFnOutputs: [record] }));
  },
  writeSamples: (completions) =>
    toBinary(
      SampleResponseSchema,
      create(SampleResponseSchema, {
        sequences: completions.map(({ tokens, logprobs, finishReason }) => ({
          stopReason: finishReason === "stop" ? 0 : 1,
          tokens: int32Bytes(tokens),
          logprobs: float32Bytes(logprobs),
        })),
      }),
    ),
};

const tensor = z.object({ data: z.array(z.number()) }).transform(({ data }) => data);
const inputSchema = z.object({
  data: z.array(
    z.object({
      model_input: z.object({ chunks: z.array(z.object({ tokens: z.array(z.int()) })) }),
      loss_fn_inputs: z.object({
        target_tokens: tensor,
        weights: tensor,
        advantages: tensor.optional(),
        logprobs: tensor.optional(),
      }),
    }),
  ),
  loss_fn: z.string(),
  loss_fn_config: z.record(z.string(), z.number()).default({}),
});
const envelope = { model_id: z.string(), seq_id: z.int() };
const forwardSchema = z
  .object({ ...envelope, forward_input: inputSchema })
  .transform(({ forward_input, ...rest }) => ({ ...rest, input: forward_input }));
const forwardBackwardSchema = z
  .object({ ...envelope, forward_backward_input: inputSchema })
  .transform(({ forward_backward_input, ...rest }) => ({ ...rest, input: forward_backward_input }));

export const jsonWire: ServedWire = {
  type: "application/json",
  readForwardBackward(body, path) {
    const schema = path === "forward" ? forwardSchema : forwardBackwardSchema;
    const { model_id, seq_id, input } = schema.parse(JSON.parse(Buffer.from(body).toString("utf8")));
    return {
      modelId: model_id,
      seqId: seq_id,
      lossFn: input.loss_fn,
      lossFnConfig: input.loss_fn_config,
      forwardOnly: path === "forward",
      data: input.data.map(({ model_input, loss_fn_inputs: { target_tokens, weights, advantages, logprobs } }) => ({
        input: model_input.chunks.flatMap(({ tokens }) => tokens),
        targets: target_tokens,
        weights,
        advantages,
        logprobs,
      })),
    };
  },
  writeForwardBackward: (rows) =>
    jsonBytes({
      loss_fn_output_type: "scalar",
      loss_fn_outputs: rows.map((row) => ({ logprobs: { data: row, dtype: "float32", shape: [row.length] } })),
      metrics: {},
    }),
  writeSamples: (completions) =>
    jsonBytes({
      type: "sample",
      sequences: completions.map(({ tokens, logprobs, finishReason }) => ({
        tokens,
        logprobs,
        stop_reason: finishReason,
      })),
    }),
};

export const jsonBytes = (value: unknown): Uint8Array => Buffer.from(JSON.stringify(value));
