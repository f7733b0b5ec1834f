import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import pLimit from "p-limit";
import { z } from "zod";
import type { EngineState, Loss, TrainingEngine } from "../../trainer/engines/engine.ts";
import type { TinkerProfile } from "../../trainer/engines/tinker/profiles.ts";
import { promptOf, servedGroups, servedLoss } from "./tinker-embedded.ts";
import { jsonBytes, jsonWire, protobufWire, type ServedDatum } from "./tinker-wire.ts";

/** A request about to be submitted, or a result about to be handed out. */
export interface ServedCall {
  readonly at: "submit" | "result";
  readonly verb: string;
  /** 1 for the first of this verb and place. */
  readonly nth: number;
  /** 1 for the first of all calls. */
  readonly total: number;
}

/** What goes wrong with a call. */
export type Fault =
  /** The connection breaks before or after the server did what it was asked; `restart`: the server dies with it. */
  | { readonly kind: "reset"; readonly when: "before" | "after"; readonly restart?: boolean }
  /** No answer at all. */
  | { readonly kind: "hang" }
  | { readonly kind: "answer"; readonly status: number; readonly body: unknown }
  /** Another result in place of the right one. */
  | { readonly kind: "change"; readonly change: (result: Uint8Array) => Uint8Array };

export interface TinkerServerOptions {
  readonly profile: TinkerProfile;
  readonly baseModel: string;
  /** The engine that does the work; one per model held, and one that samples. */
  readonly openEngine: () => Promise<TrainingEngine>;
  readonly fault?: (call: ServedCall) => Fault | undefined;
  /** Milliseconds a question for a result is held back. */
  readonly holdMs?: number;
  /** Packs what save_weights_for_sampler saves where others can load it. */
  readonly pack?: (saved: {
    readonly model: string;
    readonly name: string;
    readonly weights: Uint8Array;
  }) => Promise<void>;
  /** What the engine is given of a sample request's prompt; by default all but the token that begins an answer. */
  readonly readPrompt?: (tokens: readonly number[]) => readonly number[];
}

/** A Tinker server on loopback around a real engine. */
export interface TinkerServer {
  readonly url: URL;
  /** Models held now. */
  readonly models: readonly string[];
  /** Verbs that ran, in order. */
  readonly ran: readonly string[];
  /** Verbs that were submitted, sent again or not, in order. */
  readonly asked: readonly string[];
  /** What a path of a checkpoint stands for. */
  checkpoint(path: string): EngineState;
  /** Takes a state in as a checkpoint. @returns its path */
  store(state: EngineState): string;
  /** Models, sessions and connections are lost; checkpoints stay, and results where the profile keeps them. */
  restart(): void;
  close(): Promise<void>;
}

interface Model {
  readonly engine: TrainingEngine;
  /** Sequence-mean servers: what the next optimiser step is made of. */
  readonly held: { readonly data: readonly ServedDatum[]; readonly loss: Loss }[];
  used: boolean;
}
type Outcome = { readonly type: string; readonly bytes: Uint8Array } | { readonly failed: string };
interface Future {
  readonly verb: string;
  readonly settled: Promise<Outcome>;
  done: boolean;
}

class Refusal extends Error {
  readonly status: number;
  constructor(status: number, detail: string) {
    super(detail);
    this.status = status;
  }
}

const adamSchema = z.looseObject({
  learning_rate: z.number(),
  beta1: z.number(),
  beta2: z.number(),
  eps: z.number(),
  weight_decay: z.number(),
});
const bodySchema = z.looseObject({
  session_id: z.string().optional(),
  base_model: z.string().optional(),
  model_id: z.string().optional(),
  request_id: z.string().optional(),
  seq_id: z.int().optional(),
  path: z.string().optional(),
  optimizer: z.boolean().optional(),
  adam_params: adamSchema.optional(),
  model_path: z.string().optional(),
  num_samples: z.int().optional(),
  prompt: z.object({ chunks: z.array(z.object({ tokens: z.array(z.int()) })) }).optional(),
  sampling_params: z.looseObject({ seed: z.int(), temperature: z.number() }).optional(),
});
type Body = z.infer<typeof bodySchema>;

const weightOf = ({ weights }: ServedDatum): number => weights.reduce((sum, weight) => sum + weight, 0);

export async function startTinkerServer(options: TinkerServerOptions): Promise<TinkerServer> {
  const { profile, baseModel, holdMs = 40, readPrompt = promptOf } = options;
  const json = !profile.encoding.accept.includes("protobuf");
  const wire = json ? jsonWire : protobufWire;
  const sessions = new Set<string>();
  const models = new Map<string, Model>();
  const checkpoints = new Map<string, EngineState>();
  const futures = new Map<string, Future>();
  const seen = new Map<string, { readonly hash: string; readonly requestId: string }>();
  const counts = new Map<string, number>();
  const idle: TrainingEngine[] = [];
  const engines: TrainingEngine[] = [];
  const [ran, asked]: [string[], string[]] = [[], []];
  const exclusive = pLimit(1);
  let [ids, total, sampling] = [0, 0, ""];

  const openEngine = async (): Promise<TrainingEngine> => {
    const engine = await options.openEngine();
    engines.push(engine);
    return engine;
  };
  const sampler = await openEngine();
  const fresh = await sampler.exportState();
  const { groupSize } = sampler.limits;

  const jsonOutcome = (value: unknown): Outcome => ({ type: "application/json", bytes: jsonBytes(value) });

  function model(id: string | undefined): Model {
    const found = models.get(id ?? "");
    if (found === undefined) throw new Refusal(404, `Model not found: ${id}`);
    return found;
  }

  function checkpoint(path: string | undefined): EngineState {
    const found = checkpoints.get(path ?? "");
    if (found === undefined) throw new Refusal(404, `Checkpoint not found: ${path}`);
    return found;
  }

  function begin(verb: string, work: () => Promise<Outcome>): string {
    const requestId = `request-${++ids}`;
    const future: Future = {
      verb,
      done: false,
      settled: exclusive(async () => {
        try {
          const outcome = await work();
          ran.push(verb);
          return outcome;
        } catch (error) {
          return { failed: error instanceof Error ? error.message : String(error) };
        } finally {
          future.done = true;
        }
      }),
    };
    futures.set(requestId, future);
    return requestId;
  }

  function name(modelId: string | undefined, kind: string, path: string | undefined): string {
    const full = `tinker://${modelId}/${kind}/${path}`;
    if (checkpoints.has(full)) throw new Refusal(409, `Checkpoint exists: ${full}`);
    return full;
  }

  async function forwardBackward(target: Model, bytes: Uint8Array, path: string): Promise<Outcome> {
    const { data, lossFn, lossFnConfig, forwardOnly } = wire.readForwardBackward(bytes, path);
    const loss = servedLoss(lossFn, lossFnConfig);
    const { groups, rows } = servedGroups(data, groupSize);
    const holds = !forwardOnly && profile.reduction === "sequence-mean";
    if (holds) target.held.push({ data, loss });
    const logprobs =
      forwardOnly || holds
        ? await target.engine.forward(groups)
        : (await target.engine.forwardBackward(groups, loss)).logprobs;
    return { type: wire.type, bytes: wire.writeForwardBackward(rows(logprobs)) };
  }

  async function optimStep(target: Model, adam: z.infer<typeof adamSchema>): Promise<Outcome> {
    const count = target.held.reduce((sum, { data }) => sum + data.length, 0);
    for (const { data, loss } of target.held.splice(0)) {
      const { groups } = servedGroups(data, groupSize, (datum) => 1 / (weightOf(datum) * count));
      await target.engine.forwardBackward(groups, loss);
    }
    const clip = profile.gradientClipping === undefined ? undefined : adam[profile.gradientClipping];
    const { gradNorm } = await target.engine.optimStep({
      learningRate: adam.learning_rate,
      beta1: adam.beta1,
      beta2: adam.beta2,
      epsilon: adam.eps,
      weightDecay: adam.weight_decay,
      maxGradNorm: typeof clip === "number" ? clip : Number.MAX_VALUE,
    });
    return jsonOutcome({ metrics: { [profile.gradientNorm[0] ?? ""]: gradNorm } });
  }

  /** Checks a verb and begins its work. */
  function submit(verb: string, body: Body, bytes: Uint8Array): string {
    const { model_id, path } = body;
    switch (verb) {
      case "forward":
      case "forward_backward": {
        const target = model(wire.readForwardBackward(bytes, verb).modelId);
        target.used = true;
        return begin(verb, () => forwardBackward(target, bytes, verb));
      }
      case "optim_step": {
        const target = model(model_id);
        target.used = true;
        return begin(verb, () => optimStep(target, adamSchema.parse(body.adam_params)));
      }
      case "save_weights":
      case "save_weights_for_sampler": {
        const target = model(model_id);
        const full = name(model_id, verb === "save_weights" ? "weights" : "sampler_weights", path);
        checkpoints.set(full, fresh); // taken; the content follows
        return begin(verb, async () => {
          const state = await target.engine.exportState();
          checkpoints.set(full, state);
          const saved = { model: model_id ?? "", name: path ?? "", weights: state.weights };
          if (verb === "save_weights_for_sampler") await options.pack?.(saved);
          return jsonOutcome({ path: full });
        });
      }
      case "load_weights": {
        const target = model(model_id);
        const state = checkpoint(path);
        if (profile.loadsFirst && target.used) throw new Refusal(400, "load_weights must be the first request");
        target.used = true;
        return begin(verb, async () => {
          target.held.splice(0);
          await target.engine.importState(body.optimizer === true ? state : { weights: state.weights });
          return jsonOutcome({ path });
        });
      }
      case "asample": {
        checkpoint(body.model_path);
        return begin(verb, async () => {
          if (sampling !== body.model_path) {
            await sampler.importState({ weights: checkpoint(body.model_path).weights });
            sampling = body.model_path ?? "";
          }
          const prompt = readPrompt(body.prompt?.chunks.flatMap(({ tokens }) => tokens) ?? []);
          const { seed, temperature } = { seed: 0, temperature: 1, ...body.sampling_params };
          const request = { prompts: [prompt], n: body.num_samples ?? 1, temperature, seed: String(seed) };
          const [completions = []] = await sampler.sample(request);
          return { type: wire.type, bytes: wire.writeSamples(completions) };
        });
      }
      case "unload_model": {
        const { engine } = model(model_id);
        models.delete(model_id ?? "");
        return begin(verb, async () => {
          idle.push(engine);
          return jsonOutcome({});
        });
      }
      default:
        throw new Refusal(404, `no such path: ${verb}`);
    }
  }

  async function createModel(body: Body): Promise<object> {
    if (!sessions.has(body.session_id ?? "")) throw new Refusal(404, "Session not found");
    if (body.base_model !== baseModel) throw new Refusal(422, `not served: ${body.base_model}`);
    const model_id = `model-${++ids}`;
    const engine = idle.pop() ?? (await openEngine());
    models.set(model_id, { engine, held: [], used: false });
    const request_id = begin("create_model", async () => {
      await engine.importState({ weights: fresh.weights });
      return jsonOutcome({ model_id });
    });
    return { model_id, request_id };
  }

  /** The id of the request, the same for one sent again where the profile says so. */
  function submitOnce(verb: string, body: Body, bytes: Uint8Array): string {
    const arrays = verb === "forward_backward" || verb === "forward";
    const numbered = arrays ? wire.readForwardBackward(bytes, verb) : { modelId: body.model_id, seqId: body.seq_id };
    if (!profile.deduplicates || numbered.seqId === undefined) return submit(verb, body, bytes);
    const key = `${numbered.modelId}/${numbered.seqId}`;
    const hash = createHash("sha256").update(bytes).digest("hex");
    const known = seen.get(key);
    if (known !== undefined && known.hash !== hash) throw new Refusal(409, `seq_id ${key} was used by another request`);
    const requestId = known?.requestId ?? submit(verb, body, bytes);
    seen.set(key, { hash, requestId });
    return requestId;
  }

  function faultOf(at: ServedCall["at"], verb: string): Fault | undefined {
    const key = `${at}/${verb}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
    return options.fault?.({ at, verb, nth: counts.get(key) ?? 0, total: ++total });
  }

  const respond = (response: ServerResponse, status: number, { type, bytes }: { type: string; bytes: Uint8Array }) =>
    void response.writeHead(status, { "content-type": type }).end(bytes);
  const answer = (response: ServerResponse, status: number, value: unknown) =>
    respond(response, status, { type: "application/json", bytes: jsonBytes(value) });

  async function retrieve(requestId: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const future = futures.get(requestId);
    if (future === undefined) throw new Refusal(404, `Future not found: ${requestId}`);
    let timer: NodeJS.Timeout | undefined;
    await Promise.race([future.settled, new Promise((resolve) => (timer = setTimeout(resolve, holdMs)))]);
    clearTimeout(timer);
    if (!future.done) {
      if (json) return answer(response, 200, { type: "try_again", queue_state: "active" });
      throw new Refusal(408, "not yet");
    }
    const outcome = await future.settled;
    const fault = faultOf("result", future.verb);
    if (fault?.kind === "reset" && fault.when === "before") return drop(request, fault);
    if (fault?.kind === "hang") return;
    if (fault?.kind === "answer") return answer(response, fault.status, fault.body);
    if (!profile.resultsStay) futures.delete(requestId);
    if (fault?.kind === "reset") return drop(request, fault);
    if ("failed" in outcome) throw new Refusal(400, outcome.failed);
    respond(response, 200, fault?.kind === "change" ? { ...outcome, bytes: fault.change(outcome.bytes) } : outcome);
  }

  function drop(request: IncomingMessage, { restart }: { readonly restart?: boolean }): void {
    if (restart === true) forget();
    request.socket.destroy();
  }

  function forget(): void {
    for (const { engine } of models.values()) void exclusive(async () => idle.push(engine));
    models.clear();
    sessions.clear();
    if (!profile.resultsStay) futures.clear();
    server.closeAllConnections();
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const verb = (request.url ?? "").replace("/api/v1/", "");
    const bytes = await buffer(request);
    const isJson = request.headers["content-type"] === "application/json";
    if (verb === "get_server_capabilities") {
      return answer(response, 200, { supported_models: [{ model_name: baseModel }] });
    }
    const arrays = verb === "forward_backward" || verb === "forward";
    if (arrays && request.headers["content-type"] !== wire.type) throw new Refusal(415, "Unsupported Media Type");
    if (!arrays && !isJson) throw new Refusal(415, "Unsupported Media Type");
    const body = isJson ? bodySchema.parse(JSON.parse(bytes.toString("utf8"))) : {};
    if (verb === "session_heartbeat") return answer(response, 200, {});
    if (verb === "retrieve_future") return await retrieve(body.request_id ?? "", request, response);
    asked.push(verb);
    const fault = faultOf("submit", verb);
    if (fault?.kind === "reset" && fault.when === "before") return drop(request, fault);
    if (fault?.kind === "hang") return;
    if (fault?.kind === "answer") return answer(response, fault.status, fault.body);
    const answered = await (async () => {
      if (verb === "create_session") {
        const session_id = `session-${++ids}`;
        sessions.add(session_id);
        return { session_id };
      }
      if (verb === "create_model") return await createModel(body);
      return { request_id: submitOnce(verb, body, bytes) };
    })();
    if (fault?.kind === "reset") return drop(request, fault);
    answer(response, 200, answered);
  }

  const server = createServer((request, response) => {
    handle(request, response).catch((error: unknown) => {
      if (response.headersSent) return;
      const detail = error instanceof Error ? error.message : String(error);
      answer(response, error instanceof Refusal ? error.status : 500, { detail });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;

  return {
    url: new URL(`http://127.0.0.1:${port}`),
    get models() {
      return [...models.keys()];
    },
    ran,
    asked,
    checkpoint,
    store(state) {
      const path = `tinker://stored/weights/${++ids}`;
      checkpoints.set(path, state);
      return path;
    },
    restart: forget,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await exclusive(async () => {});
      await Promise.all(engines.map((engine) => engine.close()));
    },
  };
}
