import { z } from "zod";

/*
 * What `rootstep mcp-tape`, which stands in the place of an MCP server over stdio, says to the proxy of its run.
 * It asks for each line of its client (POST, body: the line); the answer is one line of JSON, or two where the line has to
 * wait for others. Where the proxy says "live", the wrapper asks the real server and tells what came of it.
 */

export const STDIO_HEADER = "x-rootstep-stdio";

/** The method under which a line of stdio stands on tape. */
export const STDIO_METHOD = "STDIO";

export const stdioDecisionSchema = z.union([
  z.strictObject({
    from: z.literal("tape"),
    lines: z.array(z.string()),
    /** The recorded server ended without an answer. */
    isCut: z.boolean().exactOptional(),
  }),
  z.strictObject({ from: z.literal("live"), exchange: z.number().int() }),
  z.strictObject({ from: z.literal("held") }),
  z.strictObject({ error: z.strictObject({ code: z.string(), message: z.string() }) }),
]);
export type StdioDecision = z.infer<typeof stdioDecisionSchema>;

export const stdioDoneSchema = z.strictObject({
  exchange: z.number().int(),
  /** cut: the server ended before it had answered. */
  outcome: z.enum(["complete", "cut"]),
  /** Of the server, in order. */
  lines: z.array(z.string()),
});
export type StdioDone = z.infer<typeof stdioDoneSchema>;
