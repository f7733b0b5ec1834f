import { normalizeAgent, sameAgent } from "../../trajectory/agent-name.ts";
import type { ParsePath } from "../method.ts";
import { AGENT_KEYS, type AnswerCandidate, answerCandidates, REASON_KEYS } from "./answer-candidates.ts";
import { answerText, isRefusal, lastAnswerTag } from "./answer-text.ts";
import { readFields } from "./read-fields.ts";

/** What could be read from a model's free answer. */
export interface ParsedAnswer {
  readonly agent: string | null;
  /** 0-based, as the log shows steps. */
  readonly step: number | null;
  readonly parsePath: ParsePath;
  readonly parseFailure?: string;
  /** How many different answers there were; the last one counts. */
  readonly answers?: number;
  readonly reason?: string;
}

const NOBODY = new Set(["", "none", "n/a", "na", "null", "unknown", "nobody", "no agent", "-", "?"]);

/**
 * Reads agent and step from whatever form a model chose: `<answer>agent | step</answer>`, JSON, labelled lines, the same in
 * markdown, and as a last resort prose that names exactly one agent and one step. Of several answers the last one counts.
 * The way it was read is recorded; what cannot be read is a parse failure with its reason, never a guess.
 *
 * @param agents the agents of the run: they settle spelling, and prose is only searched for these
 */
export function parseAnswer(output: string, agents: readonly string[]): ParsedAnswer {
  const answer = answerText(output);
  if ("failure" in answer) return failure(answer.failure);
  const { text } = answer;
  const candidates = answerCandidates(text);
  const last = candidates.findLast((c) => c.agent !== undefined && c.step !== undefined) ?? candidates.at(-1);
  if (last === undefined) return fromProse(text, agents);
  const answers = candidates.length === 1 ? 1 : different(candidates, agents);
  return { ...complete(last, agents), ...(answers > 1 && { answers }) };
}

function different(candidates: readonly AnswerCandidate[], agents: readonly string[]): number {
  return new Set(candidates.map(({ agent, step }) => JSON.stringify([cleanAgent(agent, agents), readStep(step)]))).size;
}

/** The agent alone, where no step was asked for: under its label, in an answer tag, or the only agent that prose names. */
export function parseAgent(output: string, agents: readonly string[]): Omit<ParsedAnswer, "step" | "answers"> {
  const answer = answerText(output);
  if ("failure" in answer) return noAgent(answer.failure);
  const { text } = answer;
  const fields = readFields(text, { agent: [...AGENT_KEYS], reason: [...REASON_KEYS] });
  const reason = fields?.last.reason;
  const withReason = reason !== undefined && reason !== "" ? { reason } : {};
  const tag = lastAnswerTag(text);
  const raw = fields?.last.agent ?? tag;
  if (raw !== undefined) {
    const [line = ""] = raw.split("\n", 1);
    const clean = cleanAgent(line, agents);
    const named = mentioned(line.normalize("NFKC").toLowerCase(), agents);
    const agent = clean !== null && !agents.includes(clean) && named.length === 1 ? (named[0] ?? clean) : clean;
    if (agent === null) return { ...noAgent("the answer names no agent"), ...withReason };
    return { agent, parsePath: fields?.last.agent === undefined ? "answer-tag" : fields.path, ...withReason };
  }
  const named = mentioned(text.normalize("NFKC").toLowerCase(), agents);
  const [agent] = named;
  if (named.length === 1 && agent !== undefined) return { agent, parsePath: "prose", ...withReason };
  const refused = named.length === 0 && isRefusal(text);
  return noAgent(refused ? "the model declined to answer" : `prose names ${named.length} agents, not one`);
}

const noAgent = (parseFailure: string) => ({ agent: null, parsePath: "none" as const, parseFailure });

const failure = (parseFailure: string): ParsedAnswer => ({ agent: null, step: null, parsePath: "none", parseFailure });

function complete(candidate: AnswerCandidate, agents: readonly string[]): ParsedAnswer {
  const agent = cleanAgent(candidate.agent, agents);
  const step = readStep(candidate.step);
  const faults = [
    ...(agent === null ? ["the answer names no agent"] : []),
    ...(step === null
      ? [candidate.step === undefined ? "the answer names no step" : "the step is not one number"]
      : []),
  ];
  return {
    agent,
    step,
    parsePath: agent === null && step === null ? "none" : candidate.path,
    ...(faults.length > 0 && { parseFailure: faults.join("; ") }),
    ...(candidate.reason !== undefined && { reason: candidate.reason }),
  };
}

/** The agent without markup; in the run's own spelling where it is one of the run's. */
function cleanAgent(raw: string | undefined, agents: readonly string[]): string | null {
  const bare = (raw ?? "").replace(/^[\s*`"'“”]+|[\s*`"'“”]+$/gu, "");
  if (NOBODY.has(normalizeAgent(bare))) return null;
  if (agents.includes(bare)) return bare;
  const known = agents.find((agent) => sameAgent(agent, bare) || sameAgent(agent, bare.replace(/[.,;:]+$/u, "")));
  return known ?? bare;
}

/** The one whole number (ASCII digits) in a step's text: `3`, `Step 3`, `#3`. Ranges, lists, signs and fractions are none. */
function readStep(raw: string | undefined): number | null {
  const match =
    /^[\s*`"'#([]*(?:step)?[\s*`"'#:]*([0-9]{1,15})(?![0-9.,]*[0-9])[\s*`"').,;:\]]*(?:$|[(:\n–—-]\s*(?=[^\s0-9]))/iu.exec(
      raw ?? "",
    );
  return match?.[1] === undefined ? null : Number(match[1]);
}

function fromProse(text: string, agents: readonly string[]): ParsedAnswer {
  const lower = text.normalize("NFKC").toLowerCase();
  const named = mentioned(lower, agents);
  const steps = new Set(
    [...lower.matchAll(/\bstep\s*(?:number\s*)?#?([0-9]{1,15})(?![0-9])/gu)].map((match) => match[1]),
  );
  const [agent] = named;
  const [step] = steps;
  if (named.length === 1 && steps.size === 1 && agent !== undefined && step !== undefined) {
    return { agent, step: Number(step), parsePath: "prose" };
  }
  if (isRefusal(text)) return failure("the model declined to answer");
  return failure(
    named.length === 0 && steps.size === 0
      ? "no answer in the output"
      : `prose names ${named.length} agents and ${steps.size} steps, not one of each`,
  );
}

/** Agents whose names occur as whole words; a name inside a longer one that occurs at the same place does not count. */
function mentioned(lower: string, agents: readonly string[]): string[] {
  let rest = lower;
  const found: string[] = [];
  for (const agent of [...agents].sort((a, b) => b.length - a.length)) {
    const name = normalizeAgent(agent).replace(/[.*+?^${}()|[\]\\]/gu, "\\$&");
    const pattern = new RegExp(`(?<![\\p{L}\\p{N}_-])${name}(?![\\p{L}\\p{N}_-])`, "gu");
    const without = rest.replace(pattern, " ");
    if (without !== rest) found.push(agent);
    rest = without;
  }
  return found;
}
