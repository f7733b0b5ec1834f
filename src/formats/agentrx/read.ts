import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { RootstepError } from "../../errors.ts";
import type { Trajectory } from "../../trajectory/schema.ts";
import { onFile } from "../files.ts";
import type { LocatedTrajectory, ReadOptions } from "../format.ts";
import { RecordError } from "../record-error.ts";
import { readRecordFile } from "../who-and-when/read.ts";
import { type Annotation, decodeAnnotation, decodeRun, runName, tauRunName } from "./record.ts";
import { type AgentRxDomain, domainsIn } from "./release.ts";

/**
 * Annotated runs of the AgentRx release: the `data` folder of github.com/microsoft/AgentRx. A run is a step per message;
 * steps are counted from 1 there and converted. Runs without an annotation are left out and reported as a loss.
 *
 * @throws RootstepError FILE_MISSING, DATA_UNKNOWN_FORMAT (no label file); and unless `onBad` takes them DATA_…,
 * LABEL_OUTSIDE, DATA_DUPLICATE_ID, each naming the file and the position in it
 */
export async function* readAgentRx(source: string, options: ReadOptions = {}): AsyncGenerator<LocatedTrajectory> {
  const domains = await domainsIn(source);
  if (domains.length === 0) {
    const what = "no ground_truth folder with the label file of a known domain";
    throw new RootstepError("DATA_UNKNOWN_FORMAT", { what, where: source });
  }
  for (const domain of domains) yield* readDomain(source, domain, options);
}

/** Every file that is read, in reading order: what a checksum of the data goes over. @throws RootstepError FILE_MISSING */
export async function agentRxFiles(source: string): Promise<string[]> {
  const files = (await domainsIn(source)).map(async ({ labels, runs }) => {
    if ("file" in runs) return [join(source, labels), join(source, runs.file)];
    const names = await runNames(join(source, runs.folder));
    return [join(source, labels), ...names.map((name) => join(source, runs.folder, `${name}.json`))];
  });
  return (await Promise.all(files)).flat();
}

async function* readDomain(
  source: string,
  domain: AgentRxDomain,
  options: ReadOptions,
): AsyncGenerator<LocatedTrajectory> {
  const labelFile = join(source, domain.labels);
  const bad = (error: unknown): void => {
    if (options.onBad === undefined || !(error instanceof RootstepError)) throw error;
    options.onBad(error);
  };
  let annotations: unknown[];
  let runOf: (name: string) => Promise<{ readonly value: unknown; readonly where: string }>;
  let available: readonly string[];
  try {
    annotations = listOf(await readRecordFile(labelFile, options.maxRecordBytes), labelFile);
    ({ runOf, available } = await openRuns(source, domain, options));
  } catch (error) {
    bad(error);
    return;
  }
  const seen = new Set<string>();
  for (const [position, value] of annotations.entries()) {
    const where = `${labelFile}[${position}]`;
    let trajectory: Trajectory;
    let runWhere: string;
    try {
      const annotation = decodeAnnotation(value, where);
      refuseSecond(annotation, seen, where);
      const run = await runOf(runName(annotation));
      runWhere = run.where;
      trajectory = decodeRun(domain, annotation, run.value, { run: run.where, annotation: where });
    } catch (error) {
      bad(error);
      continue;
    }
    yield { trajectory, where: runWhere };
  }
  const without = available.filter((name) => !seen.has(name)).length;
  if (without > 0) options.onLoss?.({ field: domain.slug, count: without, why: "runs without an annotation" });
}

function refuseSecond(annotation: Annotation, seen: Set<string>, where: string): void {
  const name = runName(annotation);
  if (seen.has(name)) {
    throw new RecordError("DATA_DUPLICATE_ID", where, [
      { path: "trajectory_id", message: `${name} is annotated twice` },
    ]);
  }
  seen.add(name);
}

/** How to find a domain's runs by name, and the names there are. */
async function openRuns(source: string, { runs }: AgentRxDomain, options: ReadOptions) {
  if ("folder" in runs) {
    const folder = join(source, runs.folder);
    return {
      available: await runNames(folder),
      runOf: async (name: string) => {
        const where = join(folder, `${name}.json`);
        return { value: await readRecordFile(where, options.maxRecordBytes), where };
      },
    };
  }
  const file = join(source, runs.file);
  const entries = listOf(await readRecordFile(file, options.maxRecordBytes), file);
  const positions = new Map(entries.map((entry, position) => [tauRunName(entry) ?? `?${position}`, position]));
  return {
    available: [...positions.keys()],
    runOf: async (name: string) => {
      const position = positions.get(name);
      if (position === undefined) {
        const fault = { path: "task_id", message: `no run has the task_id ${name} that is annotated` };
        throw new RecordError("DATA_INVALID", file, [fault]);
      }
      return { value: entries[position], where: `${file}[${position}]` };
    },
  };
}

/** Names of the run files of a folder: `ID.json`. The release keeps an index (`steps_by_id.json`) among them. */
async function runNames(folder: string): Promise<string[]> {
  const names = await onFile(folder, () => readdir(folder));
  return names
    .filter((name) => name.endsWith(".json") && name !== "steps_by_id.json")
    .map((name) => name.slice(0, -".json".length))
    .sort();
}

function listOf(value: unknown, file: string): unknown[] {
  if (Array.isArray(value)) return value;
  throw new RecordError("DATA_INVALID", file, [{ path: "", message: "a list is expected" }]);
}
