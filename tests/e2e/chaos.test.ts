import { expect, it } from "vitest";
import { describeWithRedis } from "../redis-server.ts";
import { runChaos } from "./chaos-harness.ts";
import { KILL_SEED } from "./killed-runs.ts";

/** 200 take ten minutes on two cores: ROOTSTEP_CHAOS_KILLS=200, or scripts/chaos.ts, which makes 1,000. */
const KILLS = Number(process.env.ROOTSTEP_CHAOS_KILLS ?? 40);

describeWithRedis("synth run on workers", () => {
  it("loses no label, makes none twice and counts no cost twice under random kills", async () => {
    console.log(`chaos seed ${KILL_SEED}`);
    const result = await runChaos({ seed: KILL_SEED, kills: KILLS, workers: 3, say: console.log });
    expect(result.differences).toEqual([]);
    expect(result.kills.coordinator + result.kills.worker + result.kills.redis).toBeGreaterThanOrEqual(KILLS);
    for (const target of ["coordinator", "worker", "redis"] as const) expect(result.kills[target]).toBeGreaterThan(0);
  }, 3_600_000);
});
