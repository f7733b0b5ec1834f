const text = { type: "string" } as const;

/**
 * JSON Schema of an attribution: texts to think in first, then agent and step. Every field is required and none is added,
 * as servers with strict schemas demand.
 */
export function answerSchema(
  name: string,
  texts: readonly string[] = ["reason"],
): { readonly name: string; readonly schema: Readonly<Record<string, unknown>> } {
  const properties = {
    ...Object.fromEntries(texts.map((field) => [field, text])),
    agent: text,
    step: { type: "integer" },
  };
  return {
    name,
    schema: { type: "object", properties, required: Object.keys(properties), additionalProperties: false },
  };
}
