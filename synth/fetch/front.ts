import { RootstepError } from "../../src/errors.ts";
import type { CallLog } from "../proxy/call-log.ts";
import type { ProgramOutcome } from "../proxy/program-run.ts";
import type { ProxyRequest } from "../proxy/request.ts";
import { createRedactor, type Redactor } from "../tape/redact.ts";
import { type Fetch, type FetchedRequest, modelRequest, readFetched } from "./request.ts";
import { type ResponsePort, responsePort } from "./response-port.ts";
import type { FetchUpstream } from "./upstream.ts";

/** What a client library gets in the place of `fetch`. */
export interface FetchFront {
  /** Agents are told apart by their system prompts. */
  readonly fetch: Fetch;
  /** The `fetch` of one agent: its lane has the agent's name, as `/a/AGENT/v1` has it in the proxy. */
  forAgent(agent: string): Fetch;
}

/** How a run in this process ended, in the place of a program's exit code and output. */
export interface RunOutcome {
  readonly answer?: string | undefined;
  /** The run threw. */
  readonly failed?: boolean | undefined;
}

export interface OpenFront extends FetchFront {
  /** Lets every call under way end, and refuses all that come. */
  close(reason: RootstepError): void;
}

/**
 * @param server where live calls may go; undefined lets through any address, as nothing is live
 * @param serve answers a call of a model
 */
export function openFront(
  server: FetchUpstream | undefined,
  secrets: SecretsSeen,
  serve: (request: ProxyRequest, port: ResponsePort) => void,
): OpenFront {
  const open = new Set<ResponsePort>();
  let closed: RootstepError | undefined;

  const answer = (fetched: FetchedRequest, agent: string | undefined): Promise<Response> => {
    const { signal, url } = fetched;
    signal?.throwIfAborted();
    if (closed !== undefined) throw closed;
    secrets.learn(fetched.headers);
    const port = responsePort();
    const leave = (): void => port.leave(signal?.reason);
    signal?.addEventListener("abort", leave, { once: true });
    open.add(port);
    port.onceClosed(() => {
      signal?.removeEventListener("abort", leave);
      open.delete(port);
    });
    const request = modelRequest(fetched, agent);
    const address = `${url.origin}${url.pathname}`;
    if (request === undefined) {
      port.refuse(
        404,
        "NO_ROUTE",
        `no call of a model: ${fetched.method} ${address}; give this fetch to model clients only`,
      );
    } else if (server?.covers(url) === false) {
      port.refuse(404, "OTHER_UPSTREAM", `this fetch asks ${server.shown}, not ${address}`);
    } else {
      serve(request, port);
    }
    return port.response;
  };
  const fetchFor =
    (agent?: string): Fetch =>
    async (input, init) => {
      const fetched = readFetched(input, init);
      return answer(fetched instanceof Promise ? await fetched : fetched, agent);
    };

  return {
    fetch: fetchFor(),
    forAgent: fetchFor,
    close(reason) {
      closed ??= reason;
      for (const port of [...open]) port.leave(reason);
    },
  };
}

export interface SecretsSeen {
  readonly redact: Redactor;
  learn(headers: FetchedRequest["headers"]): void;
}

/** Shorter ones are what people write where a server wants no key ("ollama"), and may be words of a prompt. */
const SHORTEST_KEY = 16;

/** The keys that client libraries send are known when they send them: they are struck out from then on. */
export function secretsSeen(given: readonly string[]): SecretsSeen {
  const known = new Set(given);
  let redactor = createRedactor(given);
  return {
    redact: (text) => redactor(text),
    learn(headers) {
      const keys = [headers.authorization?.replace(/^Bearer\s+/iu, ""), headers["api-key"], headers["x-api-key"]];
      for (const key of keys) {
        if (key === undefined || key.length < SHORTEST_KEY || known.has(key)) continue;
        known.add(key);
        redactor = createRedactor([...known]);
      }
    },
  };
}

/** A log whose writing may fail while nobody waits for it: the run is told through `onFailed`. */
export function watched(log: CallLog, onFailed: (error: unknown) => void): CallLog {
  return {
    begin: log.begin,
    end(call, ending) {
      try {
        log.end(call, ending);
      } catch (error) {
        onFailed(error);
      }
    },
    get calls() {
      return log.calls;
    },
  };
}

/** An outcome as tapes of programs have it. */
export function asProgram({ answer, failed }: RunOutcome): ProgramOutcome {
  return {
    exitCode: failed === true ? 1 : 0,
    signal: null,
    timedOut: false,
    stdout: Buffer.alloc(0),
    stderrTail: "",
    answer,
  };
}

export function isOver(what: string): RootstepError {
  return new RootstepError("USAGE", { what, hint: "Make no call after finish()." });
}
