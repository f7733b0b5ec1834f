import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { bytesIn, KILL_SEED, killRepeatedly } from "../e2e/killed-runs.ts";
import { startEvalServer } from "./eval-server.ts";
import { cli, freshPath } from "./run-cli.ts";

const EPOCHS = 8;
const LOGS = 126;

it("ends with the same predictions after SIGKILL at random moments, and asks again only for what was under way", async () => {
  console.log(`kill-resume seed ${KILL_SEED}`);
  const server = await startEvalServer(() => '{"agent": "WebSurfer", "step": 1}');
  onTestFinished(server.close);
  const args = (out: string): string[] => [
    ...["eval", "run", "--method", "all-at-once", "--data.subset", "algorithm-generated", "--out", out],
    ...["--epochs", String(EPOCHS), "--concurrency", "32", "--model.concurrency", "32"],
    ...["--model.provider", "openai-compatible", "--model.base-url", server.url, "--model.model", "m"],
  ];
  const answers = (out: string): unknown[] =>
    readFileSync(join(out, "predictions.jsonl"), "utf8")
      .trim()
      .split("\n")
      .map((line) => ({ ...JSON.parse(line), latencyMs: 0 }))
      .sort((a, b) => (a.itemId < b.itemId ? -1 : a.itemId > b.itemId ? 1 : a.epoch - b.epoch));

  const undisturbed = freshPath("undisturbed");
  expect(await cli(args(undisturbed))).toMatchObject({ code: 0 });
  expect(server.asked.get("m")).toBe(LOGS * EPOCHS);

  server.asked.clear();
  const killed = freshPath("killed");
  const kills = await killRepeatedly({
    args: args(killed),
    times: 4,
    done: () => bytesIn(killed, ["predictions.jsonl"]),
    total: bytesIn(undisturbed, ["predictions.jsonl"]),
  });
  expect(kills).toBeGreaterThan(0);
  const resumed = await cli(args(killed));
  expect(resumed, resumed.stderr).toMatchObject({ code: 0 });
  expect(resumed.stdout).toContain(`${LOGS * EPOCHS} of ${LOGS * EPOCHS} predictions`);
  expect(answers(killed)).toEqual(answers(undisturbed));
  // Each kill loses at most the calls under way: 32.
  expect(server.asked.get("m")).toBeLessThanOrEqual(LOGS * EPOCHS + 32 * kills);
});
