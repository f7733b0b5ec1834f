import type { LaunchJob } from "./plan.ts";

export const ENGINE_PORT = 8001;
export const FIRST_ROLLOUT_PORT = 8100;
/** Where one vLLM server on this machine listens. */
export const LOCAL_ROLLOUTS = { host: "127.0.0.1", port: String(FIRST_ROLLOUT_PORT) };

/** A word for a POSIX shell, quoted where it needs to be. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/u.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** The command that starts the training engine. */
export function engineCommand({ cluster, model, out }: LaunchJob): string {
  return filled(cluster.engineCommand, {
    model: quoted(model),
    port: String(ENGINE_PORT),
    state: quoted(`${out}/engine`),
  });
}

/** The command that starts one vLLM server; host and port may be shell variables. */
export function rolloutCommand(
  { cluster, model, served, lengths }: LaunchJob,
  { host, port }: { readonly host: string; readonly port: string },
): string {
  return filled(cluster.rolloutCommand, {
    model: quoted(model),
    served: quoted(served),
    host,
    port,
    tensorParallel: String(cluster.tensorParallel),
    gpuMemoryUtilization: String(cluster.gpuMemoryUtilization),
    maxLength: String(lengths.maxPrompt + lengths.maxCompletion),
    loraRank: String(lengths.loraRank),
  });
}

/** The command that trains; addresses of servers come as the words given. */
export function trainCommand(
  job: LaunchJob,
  addresses: { readonly engine: string; readonly rollouts: string },
): string {
  return [
    "rootstep train run",
    `--config ${quoted(job.configFile)}`,
    `--data ${job.data.map(quoted).join(" ")}`,
    `--out ${quoted(job.out)}`,
    `--servers.engine ${addresses.engine}`,
    `--servers.rollouts ${addresses.rollouts}`,
  ].join(" ");
}

function filled(template: string, values: Readonly<Record<string, string>>): string {
  return template.replaceAll(/\{(\w+)\}/gu, (whole, name: string) => values[name] ?? whole);
}
