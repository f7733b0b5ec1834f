import type { CallOptions, ChatModel, ChatRequest, ChatResponse } from "../../src/models/chat-model.ts";

/** How a scripted model answers, whatever method asks. */
export interface Style {
  /** Is this step (0-based) the decisive error? */
  readonly decisive?: (step: number) => boolean;
  readonly half?: (asked: number) => "earlier" | "later";
  /** 0 to 100. */
  readonly confidence?: number;
  /** Which of the steps shown is blamed: 0 the first, 1 the last. */
  readonly blame?: number;
}

/** Kinds of questions that the prompts ask, told apart by the answer they ask for. */
export type Kind = "verdict" | "half" | "confidence" | "proposal" | "moves" | "agent" | "attribution";

export function kindOf(request: ChatRequest): Kind {
  const user = request.messages[1]!.content;
  const asked = user.slice(-1500).toLowerCase();
  if (asked.includes("verdict:")) return "verdict";
  if (asked.includes("half:")) return "half";
  if (asked.includes("confidence:")) return "confidence";
  if (asked.includes("abduction:")) return "moves";
  if (asked.includes("effect:")) return "proposal";
  return asked.includes("step number:") || asked.includes("step:") ? "attribution" : "agent";
}

/** The steps a prompt shows, in order, by their headers. */
export function shownSteps(request: ChatRequest): { step: number; agent: string }[] {
  const headers = request.messages[1]!.content.matchAll(/^Step (\d+) · Agent: (.+)$/gmu);
  return [...headers].map(([, step, agent]) => ({ step: Number(step), agent: agent! }));
}

/** An answer in the form that the request asks for. */
export function plausibleAnswer(request: ChatRequest, style: Style, asked: number): string {
  const shown = shownSteps(request);
  const last = shown.at(-1)!;
  const blamed = shown[Math.floor((style.blame ?? 0) * (shown.length - 1))]!;
  const agent = blamed.agent.replace(/\s*\([^()]*\)$/u, "");
  const fields: Record<Kind, () => [string, string | number][]> = {
    verdict: () => [["Verdict", (style.decisive ?? (() => false))(last.step) ? "yes" : "no"]],
    half: () => [["Half", (style.half ?? (() => "earlier"))(asked)]],
    confidence: () => [["Confidence", style.confidence ?? 50]],
    proposal: () => [
      ["Error", "it is wrong"],
      ["First", "nothing before"],
      ["Effect", "it decides"],
      ["Agent Name", agent],
      ["Step Number", blamed.step],
    ],
    moves: () => [
      ["Abduction", "a wrong belief"],
      ["Action", `change step ${blamed.step}`],
      ["Prediction", "all goes well"],
      ["Agent Name", agent],
      ["Step Number", blamed.step],
    ],
    agent: () => [["Agent Name", agent]],
    attribution: () => [
      ["Agent Name", agent],
      ["Step Number", blamed.step],
    ],
  };
  const said: [string, string | number][] = [["Reason", "because"], ...fields[kindOf(request)]()];
  if (request.responseFormat === undefined) return said.map(([label, value]) => `${label}: ${value}`).join("\n");
  const keys: Record<string, string> = { "Agent Name": "agent", "Step Number": "step" };
  return JSON.stringify(Object.fromEntries(said.map(([label, value]) => [keys[label] ?? label.toLowerCase(), value])));
}

/** A model that answers every question in its form. `see` gets each request; none is kept: there may be gigabytes. */
export function plausibleModel(
  style: Style,
  see: (request: ChatRequest, options: CallOptions | undefined) => void = () => {},
): ChatModel & { asked(): number } {
  let asked = 0;
  return {
    id: "plausible",
    asked: () => asked,
    complete: async (request, options): Promise<ChatResponse> => {
      see(request, options);
      const content = plausibleAnswer(request, style, asked++);
      const usage = { promptTokens: 10, completionTokens: 2 };
      return { content, toolCalls: [], finishReason: "stop", model: "plausible", usage };
    },
  };
}
