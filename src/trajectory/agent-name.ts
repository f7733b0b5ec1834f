/**
 * Agent names are kept raw; this is the form in which they are compared.
 *
 * Unicode NFKC, case and runs of white space are folded; a trailing parenthesis is the log's own remark
 * ("Orchestrator (-> WebSurfer)", "Orchestrator (thought)") and is dropped. Hyphens and underscores belong to names.
 */
export function normalizeAgent(name: string): string {
  return stripRemark(name).normalize("NFKC").replace(/\s+/gu, " ").trim().toLowerCase();
}

/** The name without trailing "(…)" remarks, otherwise as written. */
export function stripRemark(name: string): string {
  let current = name.trim();
  for (;;) {
    const shorter = current.replace(/\s*\([^()]*\)$/u, "").trim();
    if (shorter === current || shorter === "") return current;
    current = shorter;
  }
}

/** True if both names mean the same agent. */
export function sameAgent(a: string, b: string): boolean {
  return normalizeAgent(a) === normalizeAgent(b);
}
