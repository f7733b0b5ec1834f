/**
 * The chaos test at length: `npx tsx scripts/chaos.ts [kills] [seed]` (after `npm run build`; needs redis-server).
 * Ends with 1 if any round differs from the undisturbed run.
 */
import { runChaos } from "../tests/e2e/chaos-harness.ts";

const kills = Number(process.argv[2] ?? 1000);
const seed = Number(process.argv[3] ?? 1);
console.log(`chaos: ${kills} kills, seed ${seed}`);
const { differences, rounds, kills: killed } = await runChaos({ seed, kills, workers: 3, say: console.log });
console.log(`${rounds} rounds, kills ${JSON.stringify(killed)}, ${differences.length} differences`);
for (const difference of differences) console.log(difference);
process.exitCode = differences.length === 0 ? 0 : 1;
