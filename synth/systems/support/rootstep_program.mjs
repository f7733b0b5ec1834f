// What rootstep tells a system's program, and how the program answers. Lies beside the program while rootstep runs it.
import { readFileSync } from "node:fs";

/** The task: `set`, `id` and `text`. */
export const task = () => JSON.parse(process.env.ROOTSTEP_TASK);

/** The task as the team is given it. */
export const problem = () => `Problem: ${task().text.trim()}\n\nSolve it one calculation at a time.`;

/** The system prompt of planner, solver or verifier. */
export const instructions = (role) => readFileSync(new URL(`./prompts/${role}.md`, import.meta.url), "utf8").trim();

/** Name of the model to ask for. */
export const model = () => process.env.ROOTSTEP_MODEL;

/** The agent's own base URL: its calls are told apart by it. */
export const baseUrl = (agent) => process.env.OPENAI_BASE_URL.replace(/\/v1$/u, `/a/${encodeURIComponent(agent)}/v1`);

export const apiKey = () => process.env.OPENAI_API_KEY;

/** Gives the team's answer: its last number, or the text where it has none. The last thing a program prints. */
export function answer(text) {
  const number = String(text ?? "")
    .match(/-?\d[\d,]*(?:\.\d+)?/gu)
    ?.at(-1);
  console.log(JSON.stringify({ answer: number?.replaceAll(",", "") ?? text }));
}
