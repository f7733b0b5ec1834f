import { type Candidate, POINT_TITLES, POINTS, type Point } from "./candidate.ts";

/** What an examiner said on its point. */
export interface Critique {
  /** In [0, 1]; null where it could not be read. */
  readonly confidence: number | null;
  readonly text: string;
}

/** One round: what was proposed and what became of it. */
export type Round =
  | {
      readonly candidate: Candidate;
      readonly rule: string;
      /** Absent where the step does not exist: there was nothing to examine. */
      readonly critiques?: Readonly<Record<Point, Critique>>;
      /** Mean over the rule check and the three examiners, in [0, 1]. */
      readonly score: number;
    }
  | { readonly candidate?: never; readonly parseFailure: string; readonly agent: string | null };

const percent = (share: number): string => `${Math.round(share * 100)} of 100`;

/** Earlier rounds as the judge reads them; empty before the first. */
export function memoryText(rounds: readonly Round[]): string {
  if (rounds.length === 0) return "";
  const parts = rounds.map((round, i) => `Round ${i + 1}\n${describe(round)}`);
  return `\nProposals examined before, with the examiners' remarks:\n\n${parts.join("\n\n")}\n`;
}

function describe(round: Round): string {
  if (round.candidate === undefined) return `No proposal could be read (${round.parseFailure}).`;
  const { candidate, rule, critiques, score } = round;
  const lines = [
    `Proposal: step ${candidate.step}, ${candidate.agent}. Confidence over all points: ${percent(score)}.`,
  ];
  lines.push(`- ${rule}`);
  for (const point of POINTS) {
    const reason = candidate.reasons[point];
    const critique = critiques?.[point];
    if (reason !== undefined) lines.push(`- ${POINT_TITLES[point]}, the judge: ${reason}`);
    if (critique !== undefined) lines.push(`- ${POINT_TITLES[point]}, the examiner: ${critiqueText(critique)}`);
  }
  return lines.join("\n");
}

/** A critique in one line: how sure, and why. */
export function critiqueText({ confidence, text }: Critique): string {
  return `${confidence === null ? "no confidence" : percent(confidence)}. ${text}`;
}
