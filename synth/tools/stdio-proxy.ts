import { RootstepError } from "../../src/errors.ts";
import { STDIO_HEADER, type StdioDecision, type StdioDone, stdioDecisionSchema } from "./stdio-wire.ts";

/** The proxy as the wrapper for stdio sees it. */
export interface StdioProxy {
  /** `later` is there where `first` says that the line has to wait. */
  ask(line: string): Promise<{ readonly first: StdioDecision; readonly later?: Promise<StdioDecision> }>;
  done(told: StdioDone): Promise<void>;
}

/** @throws RootstepError (from both) TOOL_UNREACHABLE where no proxy serves that address */
export function stdioProxy(toolsUrl: string, tool: string): StdioProxy {
  const post = async (kind: string, body: string): Promise<Response> => {
    try {
      const headers = { [STDIO_HEADER]: kind, "content-type": "application/json" };
      const response = await fetch(`${toolsUrl}/${tool}`, { method: "POST", headers, body });
      if (response.ok) return response;
      throw new Error(`HTTP ${response.status}: ${await response.text()}`);
    } catch (cause) {
      throw new RootstepError("TOOL_UNREACHABLE", {
        what: "the proxy of this run does not answer",
        hint: "Start the program through `rootstep record` or `rootstep replay`.",
        cause,
      });
    }
  };
  return {
    async ask(line) {
      const decisions = decisionsIn(await post("ask", line));
      const first = await decisions();
      return "from" in first && first.from === "held" ? { first, later: decisions() } : { first };
    },
    async done(told) {
      await post("done", JSON.stringify(told));
    },
  };
}

/** Reads one decision after the other, as they come. */
function decisionsIn(response: Response): () => Promise<StdioDecision> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  return async () => {
    for (;;) {
      const end = held.indexOf("\n");
      if (end >= 0) {
        const line = held.slice(0, end);
        held = held.slice(end + 1);
        return stdioDecisionSchema.parse(JSON.parse(line));
      }
      const part = await reader?.read();
      if (part === undefined || part.done) {
        throw new RootstepError("TOOL_UNREACHABLE", { what: "the proxy's answer broke off" });
      }
      held += part.value;
    }
  };
}
