import { z } from "zod";
import { RootstepError } from "../../src/errors.ts";
import { connectTo, type ServerAddress } from "../http.ts";

const submittedSchema = z.looseObject({ submission_id: z.string() });
const jobSchema = z.looseObject({
  status: z.enum(["PENDING", "RUNNING", "SUCCEEDED", "FAILED", "STOPPED"]),
  message: z.string().nullish(),
});
const logsSchema = z.looseObject({ logs: z.string() });

export interface RayJob {
  readonly entrypoint: string;
  /** Makes a second submission an error instead of a second job. */
  readonly submissionId: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly workingDirectory?: string;
  readonly metadata?: Readonly<Record<string, string>>;
}

export type RayStatus = z.infer<typeof jobSchema>["status"];

/** A Ray cluster's Jobs API. */
export interface RayJobs {
  /** @throws RootstepError ENGINE_FAILED where a job of that id exists */
  submit(job: RayJob): Promise<string>;
  status(id: string): Promise<{ readonly status: RayStatus; readonly message: string }>;
  logs(id: string): Promise<string>;
  stop(id: string): Promise<void>;
}

/** @param address the dashboard's; its key is the cluster's token */
export function openRayJobs(address: ServerAddress): RayJobs {
  const server = connectTo(address);
  const at = (id: string, rest = ""): string => `/api/jobs/${encodeURIComponent(id)}${rest}`;
  async function exists(id: string): Promise<boolean> {
    try {
      await server.json(jobSchema, { path: at(id) });
      return true;
    } catch (error) {
      if (error instanceof RootstepError && error.status === 404) return false;
      throw error;
    }
  }
  return {
    async submit({ entrypoint, submissionId, environment, workingDirectory, metadata }) {
      // Ray answers a second job of one id with a 500 and a traceback: better asked before.
      if (await exists(submissionId)) {
        throw new RootstepError("ENGINE_FAILED", {
          what: `a job named ${submissionId} was submitted before`,
          where: server.name,
          hint: "Give another --name, or look at that job's status.",
        });
      }
      const runtime = { env_vars: environment ?? {}, ...(workingDirectory && { working_dir: workingDirectory }) };
      const { submission_id } = await server.json(submittedSchema, {
        path: "/api/jobs/",
        json: { entrypoint, submission_id: submissionId, runtime_env: runtime, metadata: metadata ?? {} },
      });
      return submission_id;
    },
    async status(id) {
      const { status, message } = await server.json(jobSchema, { path: at(id) });
      return { status, message: message ?? "" };
    },
    logs: async (id) => (await server.json(logsSchema, { path: at(id, "/logs") })).logs,
    async stop(id) {
      await server.text({ method: "POST", path: at(id, "/stop"), json: {} });
    },
  };
}
