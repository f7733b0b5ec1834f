import { z } from "zod";

/** Layout version of a tape folder. Another version is refused, never guessed at. */
export const TAPE_FOLDER_VERSION = 1;
export const TAPE_FILE = "tape.jsonl";
export const BODIES_FILE = "bodies.jsonl";

const sha256 = z.string().regex(/^[0-9a-f]{64}$/u, "not a sha256 in hex");
const headers = z.record(z.string(), z.string());

const headerSchema = z.strictObject({
  type: z.literal("tape"),
  version: z.literal(TAPE_FOLDER_VERSION),
  rootstep: z.string(),
  run: z.string().regex(/^[a-z0-9][a-z0-9-]{0,63}$/u, "not a run id"),
  startedAt: z.string(),
  /** Base URL asked when recording, without user, password, query. */
  upstream: z.string(),
  command: z.array(z.string()),
  /** What the program ran on: a request's schema follows library versions. */
  platform: z.record(z.string(), z.string()),
});

const callSchema = z.strictObject({
  type: z.literal("call"),
  /** Order in which requests arrived; lines are in the order in which answers ended. */
  index: z.number().int().nonnegative(),
  lane: z.string(),
  laneBy: z.enum(["url", "key", "prompt", "unnamed"]),
  endpoint: z.enum(["chat/completions", "completions", "responses", "embeddings", "models"]),
  /** What the client says of itself (x-stainless-retry-count). */
  retry: z.number().int().nonnegative(),
  from: z.enum(["live", "tape", "action"]),
  /** Milliseconds after the start of the recording. */
  askedAt: z.number(),
  tookMs: z.number(),
  request: z.strictObject({
    query: z.string().exactOptional(),
    headers,
    body: sha256,
    /** sha256 of endpoint and canonical JSON. */
    key: sha256,
  }),
  response: z.strictObject({
    /** cut: the upstream ended early · aborted: the client left · unreachable: no answer began. */
    outcome: z.enum(["complete", "cut", "aborted", "unreachable"]),
    status: z.number().int(),
    headers,
    body: sha256,
    /** Byte lengths of the pieces in which the body came, where there was more than one. */
    chunks: z.array(z.number().int().nonnegative()).exactOptional(),
  }),
});

const endSchema = z.strictObject({
  type: z.literal("end"),
  calls: z.number().int().nonnegative(),
  exitCode: z.number().int().nullable(),
  signal: z.string().nullable(),
  timedOut: z.boolean(),
  stdout: sha256,
  /** What the program gave as its answer, by file or as the last JSON line of its output. */
  answer: z.string().exactOptional(),
});

export const tapeRecordSchema = z.discriminatedUnion("type", [headerSchema, callSchema, endSchema]);

export type TapeHeader = z.infer<typeof headerSchema>;
export type StoredCall = z.infer<typeof callSchema>;
export type TapeEnd = z.infer<typeof endSchema>;
export type TapeRecord = z.infer<typeof tapeRecordSchema>;
export type Endpoint = StoredCall["endpoint"];
