/** A JSON object found in a model's output, and where it stands. */
export interface FoundObject {
  readonly value: unknown;
  readonly at: number;
  readonly end: number;
}

/** More opening braces than this are not an answer but a program or a log. */
const MAX_OBJECTS = 64;

/** The outermost JSON objects of a text, bare or fenced, in order. What looks like one and is none is passed over. */
export function jsonObjects(text: string): FoundObject[] {
  const found: FoundObject[] = [];
  let tried = 0;
  for (let open = text.indexOf("{"); open >= 0 && tried < MAX_OBJECTS; tried++) {
    const end = objectEnd(text, open);
    const value = end === undefined ? undefined : parsed(text.slice(open, end));
    if (end !== undefined && value !== undefined) found.push({ value, at: open, end });
    open = text.indexOf("{", value === undefined || end === undefined ? open + 1 : end);
  }
  return found;
}

/** A key in the form in which keys are compared: `Agent Name` and `agent_name` are the same. */
export const keyName = (key: string): string => key.toLowerCase().replace(/[^a-z]/gu, "");

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    // Not JSON after all (a Python literal, say): the labelled lines may still read it.
    return undefined;
  }
}

/** Position after the brace that closes the one at `open`, strings respected. */
function objectEnd(text: string, open: number): number | undefined {
  let depth = 0;
  let quoted = false;
  for (let i = open; i < text.length; i++) {
    const char = text[i];
    if (quoted) {
      if (char === "\\") i++;
      else if (char === '"') quoted = false;
    } else if (char === '"') quoted = true;
    else if (char === "{") depth++;
    else if (char === "}" && --depth === 0) return i + 1;
  }
  return undefined;
}
