import { stat } from "node:fs/promises";
import { RootstepError } from "../errors.ts";
import { byId } from "../registry.ts";
import { detectAgentRx } from "./agentrx/detect.ts";
import { readAgentRx } from "./agentrx/read.ts";
import { onFile } from "./files.ts";
import type { TrajectoryFormat } from "./format.ts";
import { detectTracerTraj } from "./tracertraj/detect.ts";
import { readTracerTraj } from "./tracertraj/read.ts";
import { writeTracerTraj } from "./tracertraj/write.ts";
import { detectWhoAndWhen } from "./who-and-when/detect.ts";
import { readWhoAndWhen } from "./who-and-when/read.ts";
import { writeWhoAndWhen } from "./who-and-when/write.ts";

/** Every format rootstep reads. A new one is a folder and an entry here. */
export const formats: readonly TrajectoryFormat[] = [
  {
    id: "tracertraj",
    title: "TracerTraj: rootstep's trajectories, one JSON record per line (.jsonl, .jsonl.gz)",
    direction: "both",
    detect: detectTracerTraj,
    read: readTracerTraj,
    write: writeTracerTraj,
  },
  {
    id: "who-and-when",
    title: "Who&When: one JSON file per log, in folders Algorithm-Generated and Hand-Crafted",
    direction: "both",
    detect: detectWhoAndWhen,
    read: readWhoAndWhen,
    write: writeWhoAndWhen,
  },
  {
    id: "agentrx",
    title: "AgentRx: the data folder of the release (ground_truth/, magentic_dataset/, tau_retail/)",
    direction: "in",
    detect: detectAgentRx,
    read: readAgentRx,
  },
];

/** @throws RootstepError UNKNOWN_NAME, which lists the names there are */
export function formatById(id: string): TrajectoryFormat {
  return byId(formats, id, "format", "setting format");
}

/**
 * The format of a file or folder, by its names and first records.
 * @throws RootstepError FILE_MISSING; DATA_UNKNOWN_FORMAT where no format claims it, or two do with equal right
 */
export async function detectFormat(path: string): Promise<TrajectoryFormat> {
  await onFile(path, () => stat(path));
  const claims = await Promise.all(formats.map(async (format) => ({ format, confidence: await format.detect(path) })));
  const strongest = Math.max(...claims.map((claim) => claim.confidence));
  const [first, ...others] = claims.filter((claim) => claim.confidence === strongest);
  if (first === undefined || strongest === 0) {
    throw new RootstepError("DATA_UNKNOWN_FORMAT", { what: "no known format fits this content", where: path });
  }
  if (others.length > 0) {
    const names = [first, ...others].map((claim) => claim.format.id).join(" or ");
    throw new RootstepError("DATA_UNKNOWN_FORMAT", { what: `the content could be ${names}`, where: path });
  }
  return first.format;
}
