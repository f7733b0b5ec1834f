import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { isAbsolute, resolve } from "node:path";
import { RootstepError } from "../../src/errors.ts";
import { isRecord } from "../../src/is-record.ts";
import { toolsFileIn } from "../tools/mapping.ts";
import { type ProgramEnd, type RunningProgram, runProgram } from "./program.ts";
import { field } from "./request.ts";
import type { Sandbox } from "./sandbox.ts";
import type { RunningProxy } from "./server.ts";

/** How a program is run behind the proxy, the same in a recording and in its replays. */
export interface ProgramSettings {
  readonly command: readonly string[];
  /** The caller's environment and folder. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly timeLimitMs: number;
  /** Leaves HOME as it is, for programs that find their packages there. */
  readonly keepHome?: boolean | undefined;
  /** Variables the program must not see: the upstream's key. */
  readonly hidden?: readonly string[] | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onOutput?: ((bytes: Buffer, stream: "stdout" | "stderr") => void) | undefined;
}

export interface ProgramOutcome extends ProgramEnd {
  /** What it left in ROOTSTEP_ANSWER, else the `answer` of the last JSON line it printed. */
  readonly answer: string | undefined;
}

/** Starts the program in its sandbox, pointed at the proxy. */
export function startBehind(
  proxy: RunningProxy,
  token: string,
  sandbox: Sandbox,
  settings: ProgramSettings,
): { readonly finished: Promise<ProgramOutcome>; readonly program: RunningProgram } {
  if (settings.command.length === 0) {
    throw new RootstepError("USAGE", { what: "no program is named", hint: "Name the program after `--`." });
  }
  // Clients of MCP start servers with little of their environment: a wrapper for stdio finds its proxy by HOME.
  if (settings.keepHome !== true) writeFileSync(toolsFileIn(sandbox.home), proxy.toolsUrl, { mode: 0o600 });
  const program = runProgram({
    command: fromHere(settings.command, settings.cwd),
    cwd: sandbox.work,
    env: environment(proxy, token, sandbox, settings),
    timeLimitMs: settings.timeLimitMs,
    signal: settings.signal,
    onOutput: settings.onOutput,
  });
  const finished = program.finished.then((end) => ({ ...end, answer: answerOf(end, sandbox) }));
  return { finished, program };
}

/** The program runs in a folder of its own: arguments that name files of the caller's folder are made absolute. */
export function fromHere(command: readonly string[], cwd: string): readonly string[] {
  return command.map((part, position) => {
    const isPlainWord = position === 0 && !part.includes("/");
    if (isPlainWord || part === "" || part.startsWith("-") || isAbsolute(part)) return part;
    const path = resolve(cwd, part);
    return existsSync(path) ? path : part;
  });
}

function environment(
  proxy: RunningProxy,
  token: string,
  sandbox: Sandbox,
  { env, hidden = [], keepHome }: ProgramSettings,
): Record<string, string> {
  const passed = Object.entries(env).filter(
    (entry): entry is [string, string] =>
      entry[1] !== undefined && !hidden.includes(entry[0]) && !/^XDG_/u.test(entry[0]),
  );
  return {
    // Set and dict order of strings is part of what a Python program sends.
    PYTHONHASHSEED: "0",
    ...Object.fromEntries(passed),
    OPENAI_BASE_URL: proxy.baseUrl,
    OPENAI_API_BASE: proxy.baseUrl,
    OPENAI_API_KEY: token,
    ROOTSTEP_BASE_URL: proxy.baseUrl,
    ROOTSTEP_KEYED_BASE_URL: proxy.keyedBaseUrl,
    ROOTSTEP_ANSWER: sandbox.answerFile,
    ...(keepHome === true ? {} : { HOME: sandbox.home }),
    TMPDIR: sandbox.temporary,
    TMP: sandbox.temporary,
    TEMP: sandbox.temporary,
    PWD: sandbox.work,
    NO_PROXY: [env.NO_PROXY, "127.0.0.1"].filter((part) => part !== undefined && part !== "").join(","),
  };
}

function answerOf({ stdout }: ProgramEnd, sandbox: Sandbox): string | undefined {
  if (existsSync(sandbox.answerFile)) {
    const text = readFileSync(sandbox.answerFile, "utf8").trim();
    return answerIn(text) ?? text;
  }
  const last = stdout.toString("utf8").trimEnd().split("\n").at(-1) ?? "";
  return answerIn(last);
}

function answerIn(text: string): string | undefined {
  try {
    const value: unknown = JSON.parse(text);
    const answer = field(value, "answer");
    if (!isRecord(value) || answer === undefined) return undefined;
    return typeof answer === "string" ? answer : JSON.stringify(answer);
  } catch {
    return undefined;
  }
}

/** Why a program that ran made no call through the proxy, as far as the proxy can tell. */
export function noCallsError(proxy: RunningProxy, { stderrTail }: ProgramEnd): RootstepError {
  const { otherKey, otherPath, otherRun } = proxy.refusals;
  const what = "the program made no call through the proxy";
  if (otherKey > 0) {
    return new RootstepError("NO_CALLS", {
      what: `${what}: ${otherKey} requests came with another key`,
      hint: "Let it read its key from OPENAI_API_KEY; a program with keys of its own takes ROOTSTEP_KEYED_BASE_URL as base URL.",
    });
  }
  if (otherPath + otherRun > 0) {
    return new RootstepError("NO_CALLS", {
      what: `${what}: ${otherPath + otherRun} requests went to other paths`,
      hint: "Its base URL must be OPENAI_BASE_URL as given, with the /v1 at its end and nothing after it.",
    });
  }
  const last = stderrTail.trimEnd().split("\n").at(-1)?.slice(0, 200);
  return new RootstepError("NO_CALLS", {
    what: last === undefined || last === "" ? what : `${what}; its last words were: ${last}`,
    hint: "Let it take its base URL from OPENAI_BASE_URL: OpenAI libraries, LangChain and AutoGen do where none is set in code (base_url=…); MetaGPT wants llm.base_url in config2.yaml, LiteLLM and CrewAI OPENAI_API_BASE, the AI SDK createOpenAI({ baseURL }).",
  });
}
