/**
 * A vLLM server and a Tinker engine (SkyRL's protobuf form) in a process of its own, that answer every request alike after a delay:
 * `rollouts.ts` and `train-step.ts` start it. Answers are made once; it computes nothing.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { create, toBinary } from "@bufbuild/protobuf";
import { z } from "zod";
import { float32Bytes, int64Bytes } from "../../trainer/engines/tinker/arrays.ts";
import { ElementType, ForwardBackwardOutputSchema } from "../../trainer/engines/tinker/wire_pb.ts";

/** What the answers look like. */
export const serverSettingsSchema = z.strictObject({
  sampleDelay: z.number(),
  engineDelay: z.number(),
  prompt: z.number(),
  tokens: z.number(),
  n: z.number(),
  /** Sequences per training request. */
  rows: z.number(),
});
export type ServerSettings = z.infer<typeof serverSettingsSchema>;

/** Prompt tokens that every request of the benchmark carries. */
export const benchPrompt = (length: number): number[] => Array.from({ length }, (_, i) => 100 + ((i * 7919) % 150_000));
/** Log-probability of every token, on both sides: exact in float32, so that ratios are 1. */
const LOGPROB = -0.5;
/** `<think>` words `</think><answer>` one of n answers `</answer>` end, as the codec of `train-step.ts` reads it. */
const completion = (length: number, choice: number): number[] => [
  1,
  ...Array.from({ length: Math.max(0, length - 6) }, (_, i) => 100 + ((i * 104_729 + choice) % 150_000)),
  ...[2, 3, 10 + choice, 4, 0],
];

if (process.argv[1] === fileURLToPath(import.meta.url))
  serve(serverSettingsSchema.parse(JSON.parse(process.argv[2] ?? "")));

function serve(settings: ServerSettings): void {
  const { prompt, tokens, n, rows, sampleDelay, engineDelay } = settings;
  const sampled = JSON.stringify({
    model: "m",
    choices: Array.from({ length: n }, (_, index) => ({
      index,
      text: "",
      token_ids: completion(tokens, index),
      prompt_token_ids: benchPrompt(prompt),
      logprobs: { token_logprobs: new Array<number>(tokens).fill(LOGPROB) },
      finish_reason: "stop",
    })),
  });
  const length = prompt + tokens - 1;
  const trained = toBinary(
    ForwardBackwardOutputSchema,
    create(ForwardBackwardOutputSchema, {
      lossFnOutputs: [
        {
          numDatums: BigInt(rows),
          fields: {
            logprobs: {
              data: float32Bytes(new Array<number>(rows * length).fill(LOGPROB)),
              offsets: int64Bytes(Array.from({ length: rows + 1 }, (_, i) => 4 * i * length)),
              dtype: ElementType.FLOAT32,
            },
          },
        },
      ],
    }),
  );
  const json = (value: unknown) => ({ type: "application/json", body: JSON.stringify(value) });
  const results: Readonly<Record<string, { readonly type: string; readonly body: string | Uint8Array }>> = {
    forward_backward: { type: "application/x-protobuf", body: trained },
    optim_step: json({ metrics: { "skyrl.ai/grad_norm": 1 } }),
  };
  const ids = { session_id: "s", model_id: "m", path: "tinker://m/state" };
  const send = (response: ServerResponse, { type, body }: { type: string; body: string | Uint8Array }) =>
    void response.writeHead(200, { "content-type": type, "content-length": Buffer.byteLength(body) }).end(body);

  const answer = (request: IncomingMessage, response: ServerResponse, asked: string): void => {
    const path = (request.url ?? "").replace("/api/v1", "");
    if (path === "/v1/completions") {
      setTimeout(() => send(response, { type: "application/json", body: sampled }), sampleDelay);
    } else if (path === "/retrieve_future") {
      const { request_id } = z.object({ request_id: z.string() }).parse(JSON.parse(asked));
      const heavy = request_id === "forward_backward" || request_id === "optim_step";
      setTimeout(() => send(response, results[request_id] ?? json(ids)), heavy ? engineDelay : 0);
    } else if (path === "/get_server_capabilities") send(response, json({ supported_models: [{ model_name: "m" }] }));
    else send(response, json({ ...ids, request_id: path.slice(1) }));
  };
  const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
    const small = request.url === "/api/v1/retrieve_future";
    let asked = "";
    // A training request is read to its end and not decoded.
    request.on("data", (piece: Buffer) => {
      if (small) asked += piece.toString("utf8");
    });
    request.once("end", () => answer(request, response, asked));
  });
  server.listen(0, "127.0.0.1", () => process.send?.((server.address() as AddressInfo).port));
  process.on("disconnect", () => process.exit(0));
}
