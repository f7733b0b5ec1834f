import { stringify } from "yaml";
import { RootstepError } from "../../src/errors.ts";
import {
  ENGINE_PORT,
  engineCommand,
  FIRST_ROLLOUT_PORT,
  LOCAL_ROLLOUTS,
  rolloutCommand,
  trainCommand,
} from "./commands.ts";
import type { LaunchJob } from "./plan.ts";

/** What the operator takes as the name of a job: an RFC 1035 label of at most 47 characters. */
const JOB_NAME = /^[a-z](?:[a-z0-9-]{0,45}[a-z0-9])?$/u;

/**
 * A RayJob manifest: the head runs the training, the engine and vLLM are sidecars of the head's pod, so that they share its
 * loopback and its volume. For layouts of one node.
 *
 * @throws RootstepError LAYOUT_INVALID for more than one vLLM server, without an image, or with a name that Kubernetes does not take
 */
export function kuberayManifest(job: LaunchJob): string {
  const { cluster, name } = job;
  if (cluster.container === undefined) {
    const what = "KubeRay needs an image with rootstep, the engine and vLLM";
    throw new RootstepError("LAYOUT_INVALID", { what, where: "cluster.container" });
  }
  if (cluster.rolloutGpus !== cluster.tensorParallel || cluster.shared) {
    const what = "the KubeRay manifest has one vLLM server with GPUs of its own";
    throw new RootstepError("LAYOUT_INVALID", {
      what,
      where: "cluster.rolloutGpus, cluster.tensorParallel, cluster.shared",
      hint: "Set tensorParallel to rolloutGpus, or launch on SLURM.",
    });
  }
  if (!JOB_NAME.test(name)) {
    throw new RootstepError("LAYOUT_INVALID", {
      what: `KubeRay takes no job named ${name}`,
      where: "--name",
      hint: "Use at most 47 lower-case letters, digits and hyphens, a letter first.",
    });
  }
  const mounts = [{ name: "shared", mountPath: job.out }];
  const gpus = (n: number) => ({ limits: { "nvidia.com/gpu": n } });
  const sidecar = (of: string, command: string, n: number, probe: string) => ({
    name: of,
    image: cluster.container,
    command: ["bash", "-c", command],
    resources: gpus(n),
    volumeMounts: mounts,
    startupProbe: {
      exec: { command: ["curl", "-sf", probe] },
      periodSeconds: 10,
      failureThreshold: cluster.readyMinutes * 6,
    },
  });
  const rollouts = `http://127.0.0.1:${FIRST_ROLLOUT_PORT}`;
  const engine = `http://127.0.0.1:${ENGINE_PORT}`;
  return stringify({
    apiVersion: "ray.io/v1",
    kind: "RayJob",
    metadata: { name, namespace: cluster.kuberay.namespace },
    spec: {
      entrypoint: trainCommand(job, { engine, rollouts }),
      backoffLimit: 3,
      shutdownAfterJobFinishes: true,
      rayClusterSpec: {
        rayVersion: cluster.kuberay.rayVersion,
        headGroupSpec: {
          // The operator has the dashboard listen to the pod's network, from where it and the submitter follow the job.
          rayStartParams: {},
          template: {
            spec: {
              containers: [
                { name: "ray-head", image: cluster.container, volumeMounts: mounts },
                sidecar("engine", engineCommand(job), cluster.engineGpus, `${engine}/api/v1/healthz`),
                sidecar("vllm", rolloutCommand(job, LOCAL_ROLLOUTS), cluster.rolloutGpus, `${rollouts}/health`),
              ],
              volumes: [{ name: "shared", persistentVolumeClaim: { claimName: cluster.kuberay.volumeClaim } }],
            },
          },
        },
      },
    },
  });
}
