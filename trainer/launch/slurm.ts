import { dirname } from "node:path";
import { ENGINE_PORT, engineCommand, FIRST_ROLLOUT_PORT, quoted, rolloutCommand, trainCommand } from "./commands.ts";
import { type LaunchJob, nodesOf, rolloutGpusOnFirstNode } from "./plan.ts";

/**
 * A batch script: engine and vLLM servers as steps of the job, a gate that waits until they are healthy, the training, and
 * a requeue where the job is preempted or its time runs out. Logs are in OUT/logs. With an image, servers and training run in
 * containers (pyxis) that see the folders of the job under their own names.
 */
export function slurmScript(job: LaunchJob): string {
  const { cluster, name, out } = job;
  const { slurm, gpusPerNode, tensorParallel, readyMinutes } = cluster;
  const onFirst = rolloutGpusOnFirstNode(cluster) / tensorParallel;
  const perNode = gpusPerNode / tensorParallel;
  // Without an image, training runs in the job's own shell, where `setup` has been.
  const inStep = cluster.container === undefined ? "" : `"\${step[@]}" --nodelist="$first" `;
  const directives = [
    `--job-name=${name}`,
    `--nodes=${nodesOf(cluster)}`,
    "--ntasks-per-node=1",
    `--gpus-per-node=${gpusPerNode}`,
    `--time=${slurm.time}`,
    ...(slurm.partition === undefined ? [] : [`--partition=${slurm.partition}`]),
    ...(slurm.account === undefined ? [] : [`--account=${slurm.account}`]),
    "--requeue",
    "--open-mode=append",
    // USR1 comes two minutes before the end: time for the step in progress and its checkpoint.
    "--signal=B:USR1@120",
    `--output=${out}/logs/job-%j.log`,
    ...slurm.extra,
  ];
  return `#!/usr/bin/env bash
${directives.map((directive) => `#SBATCH ${directive}`).join("\n")}
set -euo pipefail
${cluster.setup}
out=${quoted(out)}
mkdir -p "$out/logs" "$out/engine"
first=$(hostname)
mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
step=(srun --overlap --nodes=1 --ntasks=1)
${containerLines(job)}steps=()
rollouts=()

finish() {
  for step_id in "\${steps[@]}"; do kill -TERM "$step_id" 2>/dev/null || true; done
  wait
}
trap finish EXIT

# Training engine: the first ${cluster.engineGpus} GPUs of the first node.
"\${step[@]}" --nodelist="$first" --output="$out/logs/engine-%j.log" env CUDA_VISIBLE_DEVICES=${range(0, cluster.engineGpus)} \\
  bash -c ${quoted(engineCommand(job))} &
steps+=("$!")

# vLLM servers: NODE FIRST_GPU PORT. Those on the first node listen on loopback alone.
serve() {
  local gpus host=$1
  [ "$1" = "$first" ] && host=127.0.0.1
  gpus=$(seq -s, "$2" "$(($2 + ${tensorParallel} - 1))")
  "\${step[@]}" --nodelist="$1" --output="$out/logs/rollouts-$1-$3-%j.log" env CUDA_VISIBLE_DEVICES="$gpus" HOST="$host" PORT="$3" \\
    bash -c ${quoted(rolloutCommand(job, { host: "$HOST", port: "$PORT" }))} &
  steps+=("$!")
  rollouts+=("http://$host:$3")
}
for ((i = 0; i < ${onFirst}; i++)); do serve "$first" "$((${cluster.shared ? 0 : cluster.engineGpus} + i * ${tensorParallel}))" "$((${FIRST_ROLLOUT_PORT} + i))"; done
servers_left=${cluster.rolloutGpus / tensorParallel - onFirst}
for node in "\${nodes[@]}"; do
  [ "$node" = "$first" ] && continue
  for ((i = 0; i < ${perNode} && servers_left > 0; i++)); do
    serve "$node" "$((i * ${tensorParallel}))" "$((${FIRST_ROLLOUT_PORT} + i))"
    servers_left=$((servers_left - 1))
  done
done

# Health gates: a server that ends or is not ready in time ends the job.
gate() {
  local deadline=$((SECONDS + ${readyMinutes * 60}))
  until curl -sf -o /dev/null "$1"; do
    if [ "$SECONDS" -ge "$deadline" ]; then
      echo "not ready after ${readyMinutes} minutes: $1; see $out/logs" >&2
      exit 1
    fi
    for step_id in "\${steps[@]}"; do
      if ! kill -0 "$step_id" 2>/dev/null; then
        echo "a server ended before it was ready; see $out/logs" >&2
        exit 1
      fi
    done
    sleep 5
  done
}
gate "http://127.0.0.1:${ENGINE_PORT}/api/v1/healthz"
for url in "\${rollouts[@]}"; do gate "$url/health"; done

${inStep}${trainCommand(job, { engine: `http://127.0.0.1:${ENGINE_PORT}`, rollouts: `"\${rollouts[@]}"` })} &
training=$!

# Preempted, or the time is up: training saves its state and ends with 130, and the job goes back into the queue. It is
# told once: a second signal would end it before it has saved.
stopping=0
stop() {
  [ "$stopping" -eq 1 ] && return
  stopping=1
  kill -TERM "$training" 2>/dev/null || true
}
trap stop USR1 TERM
status=0
wait "$training" || status=$?
# A trap ends the wait; what counts is how the training ended.
if kill -0 "$training" 2>/dev/null; then
  status=0
  wait "$training" || status=$?
fi
if [ "$status" -eq 130 ]; then scontrol requeue "$SLURM_JOB_ID"; fi
exit "$status"
`;
}

/** Has every step run in the image, with the working folder and the job's own folders mounted where they are. */
function containerLines({ cluster, out, configFile, data, config }: LaunchJob): string {
  if (cluster.container === undefined) return "";
  const model = config.engine.kind === "tinker" ? [config.engine.modelFolder] : [];
  const folders = [...new Set([".", out, dirname(configFile), ...data.map((file) => dirname(file)), ...model])];
  return `mounts=""
for folder in ${folders.map(quoted).join(" ")}; do
  folder=$(realpath -m -- "$folder")
  mounts+="\${mounts:+,}$folder:$folder"
done
step+=(--container-image=${quoted(cluster.container)} --container-mounts="$mounts" --container-workdir="$PWD")
`;
}

function range(from: number, n: number): string {
  return Array.from({ length: n }, (_, i) => from + i).join(",");
}
