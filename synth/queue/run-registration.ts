import { z } from "zod";
import { keptSchema } from "../ledger/kept.ts";
import { synthConfigSchema } from "../pipeline/config.ts";

/** What a job says on its way to a worker. */
export const jobDataSchema = z.strictObject({
  /** rootstep's version: a worker of another one refuses the job. */
  version: z.string(),
  run: z.string(),
  /** Which invocation of the run: its caps are counted apart. */
  epoch: z.number(),
  stage: z.string(),
  key: z.string(),
  payload: z.unknown(),
  kept: z.array(keptSchema),
});
export type JobData = z.infer<typeof jobDataSchema>;

/** What a worker must know of a run to work on its units. */
export const runRegistrationSchema = z.strictObject({
  config: synthConfigSchema,
  /** Content of the task set: a worker that has other tasks refuses. */
  tasks: z.string(),
});
export type RunRegistration = z.infer<typeof runRegistrationSchema>;
