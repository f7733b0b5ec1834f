import { existsSync, readFileSync } from "node:fs";
import { sha256 } from "../checksum.ts";
import { RootstepError } from "../errors.ts";
import { isPlainPrediction } from "./plain-prediction.ts";
import { type Prediction, predictionSchema } from "./prediction.ts";

export interface PredictionFile {
  /** In file order; of several for one log and epoch the last one counts. */
  readonly predictions: readonly Prediction[];
  /** Of the whole file. */
  readonly sha256: string;
  /** True where the last line has no end: a run that is under way or was killed. It is left out. */
  readonly torn: boolean;
}

/**
 * Reads predictions.jsonl and changes nothing, so that a run that is under way can be looked at. A missing file holds none.
 * @throws RootstepError RUN_CORRUPT naming file:line and field
 */
export function readPredictions(file: string): PredictionFile {
  const bytes = existsSync(file) ? readFileSync(file) : Buffer.alloc(0);
  const end = bytes.lastIndexOf(0x0a) + 1;
  const predictions: Prediction[] = [];
  let position = 0;
  for (const line of bytes.toString("utf8", 0, end).split("\n")) {
    position++;
    if (line.trim() !== "") predictions.push(parseLine(line, file, position));
  }
  return { predictions, sha256: sha256(bytes), torn: end < bytes.length };
}

function parseLine(line: string, file: string, position: number): Prediction {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (cause) {
    throw new RootstepError("RUN_CORRUPT", { what: "a prediction is not JSON", where: `${file}:${position}`, cause });
  }
  if (isPlainPrediction(value)) return value;
  const parsed = predictionSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new RootstepError("RUN_CORRUPT", {
    what: issue === undefined ? "a prediction has the wrong shape" : issue.message,
    where: `${file}:${position} ${issue?.path.join(".") ?? ""}`.trim(),
  });
}
