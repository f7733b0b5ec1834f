import type { Redis } from "ioredis";
import { RootstepError } from "../../src/errors.ts";
import { executableStages } from "../pipeline/stages.ts";
import { tasksKey } from "../pipeline/unit-context.ts";
import { unitExecutor } from "../pipeline/unit-stage.ts";
import { redisKeys } from "../queue/redis-connection.ts";
import { type JobData, runRegistrationSchema } from "../queue/run-registration.ts";
import type { ExecuteJob } from "../queue/work.ts";
import { openRunContext, type WorkerModels } from "./run-context.ts";

/** How a worker does jobs, and which model servers it shares limits on. */
export interface Executors {
  executorOf(job: JobData): Promise<ExecuteJob>;
  servers(): readonly string[];
}

/** Runs whose models and tasks stay open: a worker lives longer than the runs it works for. */
const OPEN_RUNS = 8;

/** Works on units of synth runs by what their coordinators have registered. */
export function unitExecutors(redis: Redis, models: WorkerModels): Executors {
  const opened = new Map<string, Promise<ExecuteJob>>();
  const servers = new Set<string>();
  /** @throws RootstepError JOB_UNREADABLE (no such run), TASKS_DIFFER, UNKNOWN_NAME, KEY_MISSING */
  const open = async ({ run, epoch }: JobData): Promise<ExecuteJob> => {
    const registered = await redis.get(redisKeys.run(run, epoch));
    if (registered === null) {
      const what = `run ${run} is not registered on this Redis`;
      throw new RootstepError("JOB_UNREADABLE", { what, retryable: true });
    }
    const registration = runRegistrationSchema.parse(JSON.parse(registered));
    const { config, tasks } = registration;
    const budget = redisKeys.budget(run, epoch);
    const context = await openRunContext(registration, redis, budget, models, (id) => servers.add(id));
    if (tasksKey(context) !== tasks) {
      throw new RootstepError("TASKS_DIFFER", {
        what: `task set ${config.tasks.set} has other tasks here than where the run is coordinated`,
        where: models.info.host,
      });
    }
    return unitExecutor(context, executableStages);
  };
  return {
    servers: () => [...servers],
    executorOf(job) {
      const name = `${job.run} ${job.epoch}`;
      const known = opened.get(name);
      if (known !== undefined) return known;
      const opening = open(job);
      opened.set(name, opening);
      opening.catch(() => opened.delete(name)); // a next job tries again
      for (const old of [...opened.keys()].slice(0, -OPEN_RUNS)) opened.delete(old);
      return opening;
    },
  };
}
