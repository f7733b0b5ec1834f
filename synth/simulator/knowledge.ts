import { z } from "zod";
import type { Task } from "../../src/trajectory/schema.ts";
import { type Calculation, parseCalculation } from "../tasks/calculations.ts";

const extraSchema = z.object({ calculations: z.array(z.string()) });

/** What the simulator knows: the calculations of these tasks, by problem text. */
export function knowledgeOf(tasks: readonly Task[]): (problem: string) => readonly Calculation[] | undefined {
  const known = new Map<string, readonly Calculation[]>();
  for (const task of tasks) {
    const extra = extraSchema.safeParse(task.extra);
    if (!extra.success) continue;
    const calculations = extra.data.calculations.map(parseCalculation);
    if (calculations.every((calculation) => calculation !== undefined)) known.set(promptForm(task.text), calculations);
  }
  return (problem) => known.get(problem);
}

/** The problem as the prompt reader gets it back: up to the first blank line. */
function promptForm(text: string): string {
  const end = text.indexOf("\n\n");
  return end < 0 ? text : text.slice(0, end);
}
