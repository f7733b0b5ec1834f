import { isRecord } from "../is-record.ts";
import { PARSE_PATHS } from "../methods/method.ts";
import type { Prediction } from "./prediction.ts";

/**
 * True for a value that `predictionSchema` would give back as it is: no field missing, added or of another type. Long files
 * are read by it, because the schema copies every object; what it does not know (ranking, cut, error, a missing evidence) and
 * everything wrong is the schema's to judge.
 */
export function isPlainPrediction(value: unknown): value is Prediction {
  if (!isRecord(value)) return false;
  let required = 0;
  for (const name in value) {
    if (!hasType(name, value[name])) return false;
    if (REQUIRED.has(name)) required++;
  }
  return required === REQUIRED.size;
}

const REQUIRED = new Set(["itemId", "epoch", "method", "agent", "step", "evidence", "parsePath", "calls", "latencyMs"]);
const PATHS: ReadonlySet<unknown> = new Set(PARSE_PATHS);

function hasType(name: string, field: unknown): boolean {
  switch (name) {
    case "itemId":
    case "method":
    case "rawOutput":
    case "parseFailure":
      return typeof field === "string";
    case "agent":
      return field === null || typeof field === "string";
    case "step":
      return field === null || Number.isSafeInteger(field);
    case "epoch":
    case "calls":
      return isCount(field);
    case "latencyMs":
      return typeof field === "number" && Number.isFinite(field) && field >= 0;
    case "confidence":
      return Number.isFinite(field);
    case "noStepNamed":
      return field === true;
    case "answers":
      return Number.isSafeInteger(field);
    case "parsePath":
      return PATHS.has(field);
    case "evidence":
      return Array.isArray(field) && field.every(isEvidence);
    case "usage":
      return isUsage(field);
    default:
      return false;
  }
}

const isCount = (value: unknown): boolean => typeof value === "number" && Number.isSafeInteger(value) && value >= 0;

function isEvidence(value: unknown): boolean {
  if (typeof value !== "object" || value === null || !("text" in value) || typeof value.text !== "string") return false;
  const names = Object.keys(value).length;
  return names === 1 || (names === 2 && "step" in value && Number.isSafeInteger(value.step));
}

function isUsage(value: unknown): boolean {
  return (
    typeof value === "object" &&
    value !== null &&
    "promptTokens" in value &&
    "completionTokens" in value &&
    isCount(value.promptTokens) &&
    isCount(value.completionTokens) &&
    Object.keys(value).length === 2
  );
}
