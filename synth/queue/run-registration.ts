import { z } from "zod";
import { taskSchema } from "../../src/trajectory/schema.ts";
import { keptSchema } from "../ledger/kept.ts";
import { synthConfigSchema } from "../pipeline/config.ts";
import { tasksKey, type UnitContext } from "../pipeline/unit-context.ts";

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
  /** The tasks themselves where they are of the user's own copy: workers need not have one. */
  given: z.array(taskSchema).exactOptional(),
});
export type RunRegistration = z.infer<typeof runRegistrationSchema>;

/** What the coordinator of a run tells its workers: all they need besides their own installation and keys. */
export function registrationOf(context: UnitContext): RunRegistration {
  const { config, tasks } = context;
  return {
    config,
    tasks: tasksKey(context),
    ...(config.tasks.path === undefined ? {} : { given: [...tasks.values()] }),
  };
}
