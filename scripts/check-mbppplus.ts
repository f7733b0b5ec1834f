/**
 * Does the checker accept the reference solution of every MBPP+ problem? A minute or two.
 *
 * usage: npx tsx scripts/check-mbppplus.ts
 */
import { mbppPlus } from "../synth/tasks/mbppplus/mbppplus.ts";

const tasks = await mbppPlus.load({ seed: 1, limit: Infinity });
let refused = 0;
for (const task of tasks) {
  const { success, detail } = await mbppPlus.check(task, task.referenceSolution);
  if (success) continue;
  refused++;
  console.log(`${task.id}: ${detail}`);
}
console.log(`${tasks.length - refused} of ${tasks.length} reference solutions accepted`);
process.exitCode = refused === 0 ? 0 : 1;
