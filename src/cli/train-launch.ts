import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { type TrainConfig, trainConfigSchema } from "../../trainer/config.ts";
import {
  ENGINE_PORT,
  engineCommand,
  FIRST_ROLLOUT_PORT,
  LOCAL_ROLLOUTS,
  rolloutCommand,
  trainCommand,
} from "../../trainer/launch/commands.ts";
import { kuberayManifest } from "../../trainer/launch/kuberay.ts";
import type { MemoryEstimate } from "../../trainer/launch/memory.ts";
import { type LaunchJob, type LaunchPlan, launchJob, planLaunch } from "../../trainer/launch/plan.ts";
import { openRayJobs } from "../../trainer/launch/ray.ts";
import { slurmScript } from "../../trainer/launch/slurm.ts";
import { EXIT, RootstepError } from "../errors.ts";
import { keyFromEnvironment } from "../models/key.ts";
import { parseServerUrl } from "../models/server-url.ts";
import { textTable } from "../report/table.ts";
import { type CommandContext, command, optionalString, stringArgument } from "./command.ts";
import { TRAINING_DATA } from "./training-data.ts";

/** A place to launch on: the files it needs, and how they are submitted. */
interface Target {
  readonly id: string;
  /** Name of its file in the run folder. */
  readonly file: string;
  render(job: LaunchJob): string;
  submit?(job: LaunchJob, file: string, context: CommandContext): Promise<string>;
}

const LOOPBACK = { engine: `http://127.0.0.1:${ENGINE_PORT}`, rollouts: `http://127.0.0.1:${FIRST_ROLLOUT_PORT}` };

const targets: readonly Target[] = [
  {
    id: "slurm",
    file: "job.sbatch",
    render: slurmScript,
    submit: async (_, file) => run("sbatch", ["--parsable", file]),
  },
  {
    id: "ray",
    file: "entrypoint.sh",
    // The cluster's servers stand already: the addresses are those of the configuration.
    render: (job) => `${trainCommand(job, configuredServers(job))}\n`,
    async submit(job, _, context) {
      const { address, tokenEnv } = job.cluster.ray;
      const key = context.env[tokenEnv] === undefined ? undefined : keyFromEnvironment([tokenEnv], context.env);
      const jobs = openRayJobs({ url: parseServerUrl(address, "cluster.ray.address"), key });
      return jobs.submit({ entrypoint: trainCommand(job, configuredServers(job)), submissionId: job.name });
    },
  },
  {
    id: "kuberay",
    file: "rayjob.yaml",
    render: kuberayManifest,
    submit: async (_, file) => run("kubectl", ["apply", "-f", file]),
  },
  { id: "ssh-print", file: "commands.sh", render: sshCommands },
];

/** `train launch`: writes what starts a run on a cluster, says whether it can fit, and submits it where told. */
export const trainLaunch = command<TrainConfig>({
  name: "train launch",
  describe: "write and submit a training job for SLURM, Ray, KubeRay or a shell; --dry-run prints files and estimates",
  schema: trainConfigSchema,
  arguments: [
    { name: "target", describe: "where it runs", type: "string", required: true, choices: targets.map(({ id }) => id) },
    TRAINING_DATA,
    { name: "out", describe: "run folder as the nodes see it", type: "string", required: true },
    { name: "name", describe: "name of the job [default: rootstep]", type: "string" },
    { name: "submit", describe: "submit it (sbatch, Ray's Jobs API, kubectl)", type: "boolean" },
  ],
  plans: true,
  examples: ["train launch --target slurm --config configs/qwen3-8b-h100x8.yaml --data DATA --out RUN --dry-run"],
  async run(config, args, context) {
    const target = targets.find(({ id }) => id === stringArgument(args, "target"));
    const configFile = optionalString(args, "config");
    if (target === undefined || configFile === undefined) {
      const hint = "Give --config FILE: the job reads the same file on its node.";
      throw new RootstepError("USAGE", { what: "train launch needs a configuration file", where: "--config", hint });
    }
    const out = stringArgument(args, "out");
    const job = launchJob(config, {
      configFile: resolve(configFile),
      data: Array.isArray(args.data) ? args.data.map(String) : [],
      out,
      name: optionalString(args, "name") ?? "rootstep",
    });
    const plan = planLaunch(job);
    const content = target.render(job);
    if (context.dryRun) {
      context.print(
        { plan, files: { [target.file]: content } },
        `${renderPlan(plan)}\n\n== ${target.file}\n${content}`,
      );
      return EXIT.ok;
    }
    mkdirSync(join(out, "logs"), { recursive: true });
    const file = join(out, target.file);
    writeFileSync(file, content);
    const submitted = args.submit === true ? await submit(target, job, file, context) : undefined;
    const next = submitted === undefined ? `written: ${file}; submit it with --submit` : `submitted: ${submitted}`;
    context.print({ plan, file, submitted: submitted ?? null }, `${renderPlan(plan)}\n${next}`);
    return EXIT.ok;
  },
});

function submit(target: Target, job: LaunchJob, file: string, context: CommandContext): Promise<string> {
  if (target.submit !== undefined) return target.submit(job, file, context);
  throw new RootstepError("USAGE", { what: `${target.id} only prints: there is nothing to submit`, where: "--submit" });
}

function run(program: string, args: readonly string[]): string {
  const { status, stdout, stderr, error } = spawnSync(program, args, { encoding: "utf8" });
  if (error === undefined && status === 0) return stdout.trim();
  const what =
    error === undefined ? `${program} refused the job: ${stderr.trim()}` : `${program} cannot be run: ${error.message}`;
  throw new RootstepError("SUBMIT_FAILED", { what, where: [program, ...args].join(" ") });
}

function configuredServers({ config }: LaunchJob): { readonly engine: string; readonly rollouts: string } {
  const { engine, rollouts } = config.servers;
  if (engine !== undefined && rollouts.length > 0) return { engine, rollouts: rollouts.join(" ") };
  const what = "a Ray job trains against servers that run already, and the configuration names none";
  throw new RootstepError("CONFIG_INVALID", { what, where: "servers.engine, servers.rollouts" });
}

/** What a person types on one machine, a terminal each. */
function sshCommands(job: LaunchJob): string {
  return [
    "# Terminal 1: the training engine",
    engineCommand(job),
    "# Terminal 2: vLLM",
    rolloutCommand(job, LOCAL_ROLLOUTS),
    "# Terminal 3, when both are ready:",
    trainCommand(job, LOOPBACK),
    "",
  ].join("\n");
}

const gb = (bytes: number): string => (bytes / 1e9).toFixed(1);

function renderPlan(plan: LaunchPlan): string {
  const memory = (title: string, estimate: MemoryEstimate): string =>
    textTable(
      `${title}: GB on each GPU`,
      ["part", "GB", "formula"],
      [
        ...estimate.parts.map(({ name, bytes, formula }) => [name, gb(bytes), formula]),
        ["sum", gb(estimate.total), `of ${gb(estimate.available)}`],
      ],
    );
  return [
    `${(plan.parameters / 1e9).toFixed(2)} billion parameters on ${plan.nodes} node(s), ${plan.rolloutServers} vLLM server(s)`,
    memory("Training engine", plan.engine),
    memory("vLLM server", plan.rollouts),
    `a vLLM server's cache holds ${plan.rollouts.fullLengthSequences} answers of full length`,
    `a step takes about ${plan.seconds.sampling.toFixed(0)} s of sampling and ${plan.seconds.training.toFixed(0)} s of training if every answer is as long as it may be; the run at most ${plan.hoursAtMost.toFixed(1)} h (assumptions: cluster.rolloutTokensPerSecond, cluster.modelFlopsUtilization)`,
    ...plan.warnings.map((line) => `warning: ${line}`),
  ].join("\n");
}
