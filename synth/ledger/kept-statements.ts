import type { Database } from "better-sqlite3";
import { z } from "zod";
import type { Cost } from "./cost.ts";
import { type Kept, keptSchema } from "./kept.ts";

interface Unit {
  readonly stage: string;
  readonly key: string;
}

const costRow = {
  calls: z.number(),
  prompt_tokens: z.number(),
  completion_tokens: z.number(),
  nanos: z.number().nullable(),
};
const probeRow = z.object({
  trajectory: z.string(),
  step: z.number(),
  arm: z.string(),
  edit: z.string(),
  replicate: z.number(),
  success: z.number(),
  live_calls: z.number(),
  ...costRow,
});
const answerRow = z.object({ trajectory: z.string(), request: z.string(), response: z.string(), ...costRow });

/** The tables of finished parts. Of two parts of one name the first stays: what was spent on the other is no label's cost. */
export function keptStatements(database: Database): {
  insert(unit: Unit, part: Kept): void;
  select(stage: string, key: string): Kept[];
} {
  const insertProbe = database.prepare(
    `INSERT OR IGNORE INTO probes VALUES (@stage, @key, @trajectory, @step, @arm, @edit, @replicate, @success, @liveCalls,
       @calls, @promptTokens, @completionTokens, @nanos)`,
  );
  const insertAnswer = database.prepare(
    `INSERT OR IGNORE INTO answers VALUES (@stage, @key, @trajectory, @request, @response,
       @calls, @promptTokens, @completionTokens, @nanos)`,
  );
  const probes = database.prepare<[string, string]>("SELECT * FROM probes WHERE stage = ? AND unit = ?");
  const answers = database.prepare<[string, string]>("SELECT * FROM answers WHERE stage = ? AND unit = ?");
  return {
    insert({ stage, key }, { cost, ...part }) {
      if (part.kind === "probe") insertProbe.run({ stage, key, ...part, success: Number(part.success), ...cost });
      else insertAnswer.run({ stage, key, ...part, response: JSON.stringify(part.response), ...cost });
    },
    select: (stage, key) => [
      ...z
        .array(probeRow)
        .parse(probes.all(stage, key))
        .map(({ trajectory, step, arm, edit, replicate, success, live_calls, ...cost }) =>
          keptSchema.parse({
            kind: "probe",
            trajectory,
            step,
            arm,
            edit,
            replicate,
            success: success === 1,
            liveCalls: live_calls,
            cost: costOf(cost),
          }),
        ),
      ...z
        .array(answerRow)
        .parse(answers.all(stage, key))
        .map(({ trajectory, request, response, ...cost }) =>
          keptSchema.parse({
            kind: "answer",
            trajectory,
            request,
            response: JSON.parse(response),
            cost: costOf(cost),
          }),
        ),
    ],
  };
}

export function costOf(row: {
  readonly calls: number;
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly nanos: number | null;
}): Cost {
  return {
    calls: row.calls,
    promptTokens: row.prompt_tokens,
    completionTokens: row.completion_tokens,
    nanos: row.nanos,
  };
}
