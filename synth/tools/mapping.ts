import { join } from "node:path";
import { RootstepError } from "../../src/errors.ts";
import { parseServerUrl } from "../../src/models/server-url.ts";
import type { TapeHeader } from "../tape/folder-schema.ts";
import { TOOL_NAME } from "./tool-request.ts";

/** A tool behind the proxy. */
export interface MappedTool {
  readonly name: string;
  readonly url: URL;
  /** The environment variable that leads the program there. */
  readonly variable: string;
}

/** All of a run's tools by name are below this URL; MCP servers over stdio are among them without being mapped. */
export const TOOLS_VARIABLE = "ROOTSTEP_TOOLS_URL";

/** The same URL for programs that are started without that variable. */
export function toolsFileIn(home: string): string {
  return join(home, ".rootstep-tools");
}

/**
 * Reads `NAME=URL` or `NAME:VARIABLE=URL`. Without a variable it is `ROOTSTEP_TOOL_NAME`.
 * @throws RootstepError USAGE
 */
export function parseTools(given: readonly string[]): MappedTool[] {
  const tools = given.map((text) => {
    const found = /^([^:=]+)(?::([A-Za-z_][A-Za-z0-9_]*))?=(.+)$/u.exec(text);
    const [, name = "", variable, address = ""] = found ?? [];
    if (found === null || !TOOL_NAME.test(name)) {
      throw new RootstepError("USAGE", {
        what: `"${text}" names no tool`,
        where: "--tool",
        hint: "Write NAME=URL or NAME:VARIABLE=URL; a name is of a–z, 0–9, - and _.",
      });
    }
    return { name, url: parseServerUrl(address, "--tool"), variable: variable ?? variableOf(name) };
  });
  const twice = tools.find(({ name }, at) => tools.findIndex((tool) => tool.name === name) !== at);
  if (twice === undefined) return tools;
  throw new RootstepError("USAGE", { what: `the tool ${twice.name} is named twice`, where: "--tool" });
}

export function variableOf(name: string): string {
  return `ROOTSTEP_TOOL_${name.toUpperCase().replaceAll("-", "_")}`;
}

/**
 * The tools of a replay: those of the recording, at other addresses where the user says so.
 * @throws RootstepError USAGE for a tool that the recording did not have
 */
export function toolsOfReplay(header: TapeHeader, given: readonly MappedTool[]): MappedTool[] {
  const recorded = header.tools ?? {};
  const unknown = given.find(({ name }) => recorded[name] === undefined);
  if (unknown !== undefined) {
    const what = `the recording has no tool ${unknown.name}; it has: ${Object.keys(recorded).join(", ") || "none"}`;
    throw new RootstepError("USAGE", { what, where: "--tool" });
  }
  return Object.entries(recorded).map(([name, { url, variable }]) => ({
    name,
    variable,
    url: given.find((tool) => tool.name === name)?.url ?? new URL(url),
  }));
}

export function addressesOf(tools: readonly MappedTool[]): ReadonlyMap<string, URL> {
  return new Map(tools.map(({ name, url }) => [name, url]));
}

/** The tools as a tape's first line has them. */
export function toolsInHeader(
  tools: readonly MappedTool[],
  shown: Readonly<Record<string, string>>,
): NonNullable<TapeHeader["tools"]> {
  return Object.fromEntries(tools.map(({ name, variable }) => [name, { url: shown[name] ?? "", variable }]));
}

/** The variables by which the program finds its tools. */
export function toolEnvironment(tools: readonly MappedTool[], toolsUrl: string): Record<string, string> {
  return {
    [TOOLS_VARIABLE]: toolsUrl,
    ...Object.fromEntries(tools.map(({ name, variable }) => [variable, `${toolsUrl}/${name}`])),
  };
}
