import type { ToolRequest } from "./tool-request.ts";

/**
 * Where a tool's redirect leads, as the program must ask for it: relative to its request, so that it stays behind the
 * proxy at whatever port and token. Undefined where it leads out of the tool's base URL.
 *
 * @param base the tool's base URL
 */
export function locationBelow(
  base: URL,
  { tool, path }: Pick<ToolRequest, "tool" | "path">,
  location: string,
): string | undefined {
  const basePath = base.pathname.replace(/\/+$/u, "");
  const target = new URL(location, `${base.origin}${basePath}${path}`);
  if (target.origin !== base.origin) return undefined;
  if (target.pathname !== basePath && !target.pathname.startsWith(`${basePath}/`)) return undefined;
  const below = target.pathname.slice(basePath.length);
  // `/t/NAME/a/b` lies in `/t/NAME/a/`: one step up is the tool's own root.
  const up = "../".repeat(Math.max(0, path.split("/").length - 1));
  return `${up}${tool}${below}${target.search}${target.hash}`;
}
