import { readFileSync } from "node:fs";
import { TOOLS_VARIABLE, toolsFileIn } from "../../synth/tools/mapping.ts";
import { runMcpTape } from "../../synth/tools/mcp-tape.ts";
import { TOOL_NAME } from "../../synth/tools/tool-request.ts";
import { EXIT, RootstepError } from "../errors.ts";
import { type CommandContext, plainCommand, stringArgument } from "./command.ts";
import { programOf } from "./record.ts";

/** `mcp-tape`: stands in the place of an MCP server over stdio, so that its traffic goes on the tape of the run. */
export const mcpTape = plainCommand({
  name: "mcp-tape",
  describe: "put before an MCP server's command: its stdio goes on the tape of the run, and comes from it in a replay",
  arguments: [
    { name: "tool", describe: "name of the server on tape", type: "string", positional: true, required: true },
    { name: "command", describe: "the server's command, after --", type: "array", positional: true },
  ],
  examples: ["mcp-tape calculator -- uvx some-mcp-server"],
  async run(_, args, context) {
    const tool = stringArgument(args, "tool");
    if (!TOOL_NAME.test(tool)) {
      throw new RootstepError("USAGE", { what: `"${tool}" names no tool`, hint: "Use a–z, 0–9, - and _." });
    }
    const command = programOf(args);
    if (command.length === 0) {
      throw new RootstepError("USAGE", { what: "no MCP server is named", hint: "Name its command after `--`." });
    }
    const code = await runMcpTape({
      tool,
      command,
      toolsUrl: toolsUrl(context),
      env: context.env,
      input: process.stdin,
      output: process.stdout,
      note: (line) => void process.stderr.write(`rootstep mcp-tape ${tool}: ${line}\n`),
    });
    return code === 0 ? EXIT.ok : EXIT.failed;
  },
});

function toolsUrl({ env }: CommandContext): string {
  const found = env[TOOLS_VARIABLE] ?? urlInHome(env.HOME);
  if (found !== undefined) return found;
  throw new RootstepError("USAGE", {
    what: `no run is under way: neither ${TOOLS_VARIABLE} nor a note in HOME says where its proxy is`,
    hint: `Start the program through \`rootstep record\`; with --keep-home hand ${TOOLS_VARIABLE} on to the MCP server.`,
  });
}

function urlInHome(home: string | undefined): string | undefined {
  if (home === undefined) return undefined;
  try {
    return readFileSync(toolsFileIn(home), "utf8").trim();
  } catch {
    return undefined; // not in a run's own HOME
  }
}
