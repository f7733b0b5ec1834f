import { z } from "zod";

const requestSchema = z.object({ model: z.string(), messages: z.array(z.object({ content: z.string() })) });
const taskSchema = z.object({ question: z.string(), solution: z.string() });

/** Name of the model under which the analyzer's questions come. */
export const REFERENCE_ANALYZER = "reference-solution";

/**
 * An analyzer that knows the reference solution, for teams of coder and tester: a coder's step becomes the solution, a tester's
 * is not corrected. With it, what a search finds depends on the agents' model alone.
 *
 * @param tasks KodCode records
 */
export function referenceAnalyzer(tasks: readonly unknown[]): (request: unknown) => string | undefined {
  const known = tasks.map((task) => taskSchema.parse(task));
  return (request) => {
    const { model, messages } = requestSchema.parse(request);
    if (model !== REFERENCE_ANALYZER) return undefined;
    const asked = messages.at(-1)?.content ?? "";
    const solution = known.find(({ question }) => asked.includes(question))?.solution;
    const action = /^Agent: coder$/mu.test(asked) ? `\`\`\`python\n${solution}\n\`\`\`` : null;
    return JSON.stringify({ action, reason: action === null ? "not to be corrected" : "the reference solution" });
  };
}
