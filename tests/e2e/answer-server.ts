import { createServer, type IncomingMessage } from "node:http";
import { z } from "zod";
import { sha256 } from "../../src/checksum.ts";
import { canonicalJson } from "../../src/models/content-key.ts";

export const keptAnswerSchema = z.strictObject({
  /** SHA-256 of the request's canonical JSON without `stream`, `stream_options`. */
  key: z.string(),
  model: z.string(),
  content: z.string(),
  finish: z.string(),
  promptTokens: z.number(),
  completionTokens: z.number(),
});
/** What a real model answered to one request. */
export type KeptAnswer = z.infer<typeof keptAnswerSchema>;

const requestSchema = z.looseObject({ model: z.string(), stream: z.boolean().optional() });
const chunkSchema = z.object({
  choices: z.array(
    z.object({ delta: z.object({ content: z.string().nullish() }), finish_reason: z.string().nullish() }),
  ),
  usage: z.object({ prompt_tokens: z.number(), completion_tokens: z.number() }).nullish(),
});

export interface AnswerServerOptions {
  readonly answers: Map<string, KeptAnswer>;
  /** Answers some requests by rule, before the kept answers are looked at. */
  readonly byRule?: (request: Record<string, unknown>) => string | undefined;
  readonly port?: number;
  /** Asked for what is not kept, by model name; without it that is answered with 404. */
  readonly upstreams?: Readonly<Record<string, string>>;
  readonly onNew?: (answer: KeptAnswer) => void;
}

export interface AnswerServer {
  readonly url: string;
  /** Keys that were answered, and requests that no answer was kept for. */
  readonly used: ReadonlySet<string>;
  readonly missed: readonly string[];
  close(): Promise<void>;
}

/** Address of a request: the same whether or not it asks for a stream. */
export function answerKey({ stream: _, stream_options: __, ...rest }: Record<string, unknown>): string {
  return sha256(canonicalJson(rest));
}

/** An OpenAI-compatible server that gives kept answers, as a stream of one piece. */
export async function startAnswerServer(options: AnswerServerOptions): Promise<AnswerServer> {
  const { answers, byRule, port = 0, upstreams = {}, onNew } = options;
  const used = new Set<string>();
  const missed: string[] = [];
  const answerTo = async (body: string): Promise<KeptAnswer | undefined> => {
    const request = requestSchema.parse(JSON.parse(body));
    const key = answerKey(request);
    const ruled = byRule?.(request);
    if (ruled !== undefined) {
      return { key, model: request.model, content: ruled, finish: "stop", promptTokens: 0, completionTokens: 0 };
    }
    const kept = answers.get(key);
    if (kept !== undefined) {
      used.add(key);
      return kept;
    }
    missed.push(body);
    const upstream = upstreams[request.model];
    if (upstream === undefined) return undefined;
    const fresh = { key, model: request.model, ...(await ask(upstream, request)) };
    answers.set(key, fresh);
    onNew?.(fresh);
    return fresh;
  };
  const server = createServer((request, response) => {
    void (async () => {
      try {
        const answer = await answerTo(await bodyOf(request));
        if (answer === undefined) {
          response.writeHead(404, { "content-type": "application/json" });
          response.end(JSON.stringify({ error: { message: "no answer is kept for this request" } }));
          return;
        }
        response.writeHead(200, { "content-type": "text/event-stream" });
        response.end(asStream(answer));
      } catch (error) {
        response.writeHead(502, { "content-type": "application/json" });
        response.end(JSON.stringify({ error: { message: String(error) } }));
      }
    })();
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return {
    url: `http://127.0.0.1:${address.port}/v1`,
    used,
    missed,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function ask(upstream: string, request: Record<string, unknown>): Promise<Omit<KeptAnswer, "key" | "model">> {
  const response = await fetch(`${upstream}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ ...request, stream: true, stream_options: { include_usage: true } }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${upstream} answered ${response.status}: ${text.slice(0, 300)}`);
  let [content, finish, promptTokens, completionTokens] = ["", "", 0, 0];
  for (const [, data = ""] of text.matchAll(/^data: (\{.*)$/gmu)) {
    const { choices, usage } = chunkSchema.parse(JSON.parse(data));
    content += choices[0]?.delta.content ?? "";
    finish = choices[0]?.finish_reason ?? finish;
    if (usage) [promptTokens, completionTokens] = [usage.prompt_tokens, usage.completion_tokens];
  }
  if (finish === "") throw new Error(`${upstream} broke its answer off`);
  return { content, finish, promptTokens, completionTokens };
}

function asStream({ model, content, finish, promptTokens, completionTokens }: KeptAnswer): string {
  const base = { id: "kept", object: "chat.completion.chunk", created: 0, model };
  const usage = {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
  };
  const chunks = [
    { ...base, choices: [{ index: 0, delta: { role: "assistant", content }, finish_reason: null }] },
    { ...base, choices: [{ index: 0, delta: {}, finish_reason: finish }] },
    { ...base, choices: [], usage },
  ];
  return `${chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("")}data: [DONE]\n\n`;
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let body = "";
  request.setEncoding("utf8");
  for await (const part of request) body += part;
  return body;
}
