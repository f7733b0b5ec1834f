import { z } from "zod";
import { TRAJECTORY_SCHEMA_VERSION, type Trajectory, trajectorySchema } from "../../trajectory/schema.ts";
import { assertUsable, type Fault, parseRecord, RecordError } from "../record-error.ts";

const objectSchema = z.record(z.string(), z.unknown());

/** How a conversion says which top-level fields of another tool lie in `extra`, so that writing puts them back. */
const MOVED = "top-level fields moved to extra: ";

const KNOWN = new Set(Object.keys(trajectorySchema.shape));

/**
 * Trajectory of one record. Top-level fields that the model does not know are moved to `extra`, and the move is recorded.
 * @throws RecordError DATA_INVALID (another schema version, a wrong or missing field), LABEL_OUTSIDE
 */
export function decodeTracerTraj(value: unknown, location: string): Trajectory {
  const record = parseRecord(objectSchema, value, location);
  assertVersion(record.schemaVersion, location);
  const unknown = Object.keys(record).filter((key) => !KNOWN.has(key));
  const known = Object.fromEntries(Object.entries(record).filter(([key]) => KNOWN.has(key)));
  const trajectory = parseRecord(trajectorySchema, known, location);
  assertUsable(trajectory, location);
  if (unknown.length === 0) return trajectory;
  const extra = trajectory.extra ?? {};
  const [clash, ...clashes] = unknown
    .filter((key) => key in extra)
    .map((key): Fault => ({ path: key, message: `"${key}" stands both at the top level and in extra` }));
  if (clash !== undefined) throw new RecordError("DATA_INVALID", location, [clash, ...clashes]);
  return {
    ...trajectory,
    provenance: {
      ...trajectory.provenance,
      conversions: [...trajectory.provenance.conversions, MOVED + JSON.stringify(unknown)],
    },
    extra: { ...extra, ...Object.fromEntries(unknown.map((key) => [key, record[key]])) },
  };
}

/** The record of a trajectory: what `decodeTracerTraj` moved is moved back. */
export function encodeTracerTraj(trajectory: Trajectory): Record<string, unknown> {
  const { extra, ...rest } = trajectory;
  const conversions = trajectory.provenance.conversions;
  const moved = movedKeys(conversions.at(-1));
  if (extra === undefined || moved === undefined || !moved.every((key) => key in extra && !KNOWN.has(key))) {
    return { ...trajectory };
  }
  const stays = Object.entries(extra).filter(([key]) => !moved.includes(key));
  return {
    ...rest,
    provenance: { ...trajectory.provenance, conversions: conversions.slice(0, -1) },
    ...(stays.length === 0 ? {} : { extra: Object.fromEntries(stays) }),
    ...Object.fromEntries(moved.map((key) => [key, extra[key]])),
  };
}

function movedKeys(conversion: string | undefined): string[] | undefined {
  if (conversion === undefined || !conversion.startsWith(MOVED)) return undefined;
  try {
    return z
      .array(z.string())
      .min(1)
      .parse(JSON.parse(conversion.slice(MOVED.length)));
  } catch {
    // Someone else's text that begins alike: it stays a remark.
    return undefined;
  }
}

function assertVersion(version: unknown, location: string): void {
  if (version === TRAJECTORY_SCHEMA_VERSION) return;
  const found = version === undefined ? "no schemaVersion" : `schemaVersion ${JSON.stringify(version)}`;
  throw new RecordError(
    "DATA_INVALID",
    location,
    [{ path: "schemaVersion", message: `${found}; this rootstep reads version ${TRAJECTORY_SCHEMA_VERSION}` }],
    "Convert the file with the version of rootstep that wrote it.",
  );
}
