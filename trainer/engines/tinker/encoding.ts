import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { z } from "zod";
import { RootstepError } from "../../../src/errors.ts";
import { float32Bytes, int32Bytes, int64Bytes, readFloat32, readInt32, readInt64 } from "./arrays.ts";
import {
  type ArrayRecord,
  ElementType,
  ForwardBackwardOutputSchema,
  ForwardBackwardRequestSchema,
  SampleResponseSchema,
} from "./wire_pb.ts";

/** One sequence: L input tokens, the L tokens that follow them, and one number per target. */
export interface TinkerDatum {
  readonly input: readonly number[];
  readonly targets: readonly number[];
  readonly weights: readonly number[];
  readonly advantages?: readonly number[];
  readonly logprobs?: readonly number[];
}

export interface TinkerForwardBackward {
  readonly modelId: string;
  readonly seqId: number;
  readonly data: readonly TinkerDatum[];
  readonly lossFn: string;
  readonly lossFnConfig: Readonly<Record<string, number>>;
  readonly forwardOnly: boolean;
}

/** Log-probabilities of the targets per datum. */
export type TargetLogprobs = readonly (readonly number[])[];

export interface TinkerSample {
  readonly tokens: readonly number[];
  readonly logprobs: readonly number[];
  readonly finishReason: "stop" | "length";
}

/** How a server writes requests and results of the two verbs that carry arrays. */
export interface TinkerEncoding {
  readonly accept: string;
  forwardBackward(request: TinkerForwardBackward): {
    readonly path: string;
    readonly json?: object;
    readonly body?: { readonly type: string; readonly bytes: Uint8Array };
  };
  /** @throws RootstepError ENGINE_FAILED */
  readForwardBackward(result: Uint8Array): TargetLogprobs;
  /** @throws RootstepError ENGINE_FAILED */
  readSamples(result: Uint8Array): readonly TinkerSample[];
}

const PROTOBUF = "application/x-protobuf";

/** SDK 0.25 and later: arrays as packed bytes; a forward pass is a flag of forward_backward. */
export const protobufEncoding: TinkerEncoding = {
  accept: PROTOBUF,
  forwardBackward(request) {
    const message = create(ForwardBackwardRequestSchema, {
      modelId: request.modelId,
      seqId: request.seqId,
      lossFn: request.lossFn,
      lossFnConfig: { ...request.lossFnConfig },
      forwardOnly: request.forwardOnly,
      data: request.data.map((datum) => ({
        modelInput: [{ chunk: { case: "encodedText" as const, value: { tokens: int32Bytes(datum.input) } } }],
        lossFnInputs: {
          target_tokens: tensor(ElementType.INT64, int64Bytes(datum.targets), datum.targets.length),
          ...floatInputs(datum, (values) => tensor(ElementType.FLOAT32, float32Bytes(values), values.length)),
        },
      })),
    });
    const bytes = toBinary(ForwardBackwardRequestSchema, message);
    return { path: "/forward_backward", body: { type: PROTOBUF, bytes } };
  },
  readForwardBackward(result) {
    return decoded(() => fromBinary(ForwardBackwardOutputSchema, result).lossFnOutputs.flatMap(logprobsOf));
  },
  readSamples(result) {
    return decoded(() =>
      fromBinary(SampleResponseSchema, result).sequences.map(({ tokens, logprobs, stopReason }) => ({
        tokens: readInt32(tokens),
        logprobs: readFloat32(logprobs ?? new Uint8Array()),
        finishReason: stopReason === 0 ? "stop" : "length",
      })),
    );
  },
};

function tensor(dtype: ElementType, dense: Uint8Array, length: number) {
  return { encoding: { case: "dense" as const, value: dense }, dtype, shape: [BigInt(length)] };
}

/** The inputs of a loss beside its targets, under the names of the protocol. */
function floatInputs<T>(datum: TinkerDatum, write: (values: readonly number[]) => T): Record<string, T> {
  const { weights, advantages, logprobs } = datum;
  return {
    weights: write(weights),
    ...(advantages !== undefined && { advantages: write(advantages) }),
    ...(logprobs !== undefined && { logprobs: write(logprobs) }),
  };
}

function logprobsOf({ fields }: ArrayRecord): number[][] {
  const field = fields.logprobs;
  if (field === undefined) throw malformed("the result has no field logprobs");
  const offsets = readInt64(field.offsets);
  return offsets.slice(1).map((end, i) => readFloat32(field.data.subarray(offsets[i] ?? 0, end)));
}

const arraySchema = z.looseObject({ data: z.array(z.number().nullable()) });
const forwardBackwardSchema = z.looseObject({ loss_fn_outputs: z.array(z.looseObject({ logprobs: arraySchema })) });
const samplesSchema = z.looseObject({
  sequences: z.array(
    z.looseObject({
      tokens: z.array(z.int()),
      logprobs: z.array(z.number().nullable()).nullish(),
      stop_reason: z.enum(["stop", "length"]),
    }),
  ),
});

/** Servers of the protocol's first form: everything is JSON, and a forward pass has a path of its own. */
export const jsonEncoding: TinkerEncoding = {
  accept: "application/json",
  forwardBackward(request) {
    const input = {
      data: request.data.map((datum) => ({
        model_input: { chunks: [{ type: "encoded_text", tokens: datum.input }] },
        loss_fn_inputs: {
          target_tokens: { data: datum.targets, dtype: "int64", shape: [datum.targets.length] },
          ...floatInputs(datum, (values) => ({ data: values, dtype: "float32", shape: [values.length] })),
        },
      })),
      loss_fn: request.lossFn,
      ...(Object.keys(request.lossFnConfig).length > 0 && { loss_fn_config: request.lossFnConfig }),
    };
    const envelope = { model_id: request.modelId, seq_id: request.seqId };
    return request.forwardOnly
      ? { path: "/forward", json: { ...envelope, forward_input: input } }
      : { path: "/forward_backward", json: { ...envelope, forward_backward_input: input } };
  },
  readForwardBackward(result) {
    const { loss_fn_outputs } = decoded(() => forwardBackwardSchema.parse(parseJson(result)));
    return loss_fn_outputs.map(({ logprobs }) => logprobs.data.map(numberOrNaN));
  },
  readSamples(result) {
    const { sequences } = decoded(() => samplesSchema.parse(parseJson(result)));
    return sequences.map(({ tokens, logprobs, stop_reason }) => ({
      tokens,
      logprobs: (logprobs ?? []).map(numberOrNaN),
      finishReason: stop_reason,
    }));
  },
};

const parseJson = (bytes: Uint8Array): unknown => JSON.parse(Buffer.from(bytes).toString("utf8"));
/** JSON has no NaN: servers write null. */
const numberOrNaN = (value: number | null): number => value ?? Number.NaN;

function decoded<T>(read: () => T): T {
  try {
    return read();
  } catch (cause) {
    if (cause instanceof RootstepError) throw cause;
    throw malformed("the result cannot be decoded", cause);
  }
}

function malformed(what: string, cause?: unknown): RootstepError {
  const hint =
    "Check that the engine's profile fits the server's version: older servers speak JSON, newer ones protobuf.";
  return new RootstepError("ENGINE_FAILED", { what, hint, cause });
}
