import { RootstepError } from "./errors.ts";

/** Something that can be named in a setting. */
export interface Named {
  readonly id: string;
}

/**
 * The entry of a registry with that id.
 *
 * @param kind what the registry holds, as the error says it: "task set"
 * @param where the setting that names it
 * @throws RootstepError UNKNOWN_NAME listing the known ids
 */
export function byId<T extends Named>(registry: readonly T[], id: string, kind: string, where: string): T {
  const found = registry.find((entry) => entry.id === id);
  if (found !== undefined) return found;
  const known = registry.map((entry) => entry.id).join(", ");
  throw new RootstepError("UNKNOWN_NAME", { what: `there is no ${kind} "${id}"; known: ${known}`, where });
}
