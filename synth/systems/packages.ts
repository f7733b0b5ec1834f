import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { RootstepError } from "../../src/errors.ts";
import type { Environment } from "./interpreter.ts";
import { output } from "./tool.ts";

export type PackageVersions = Readonly<Record<string, string>>;

const LIST_PYTHON =
  "import importlib.metadata as m, json; print(json.dumps({d.metadata['Name']: d.version for d in m.distributions() if d.metadata['Name']}))";

/** The packages that a Python interpreter has, by normalised name (PEP 503); undefined for one that does not run. */
export async function pythonPackages(
  interpreter: string,
  env: Environment,
  cwd?: string,
): Promise<PackageVersions | undefined> {
  const printed = await output([interpreter, "-I", "-c", LIST_PYTHON], env, cwd);
  if (printed === undefined) return undefined;
  const found = z.record(z.string(), z.string()).parse(JSON.parse(printed));
  return sorted(Object.entries(found).map(([name, version]) => [normalised(name), version]));
}

const nodeLockSchema = z.looseObject({
  packages: z.record(z.string(), z.looseObject({ version: z.string().optional() })),
});

/**
 * The packages in a folder's node_modules, from npm's own record of what it put there; none where there is no such folder.
 * @throws RootstepError FILE_MISSING where there is no record
 */
export function nodePackages(folder: string): PackageVersions {
  if (!existsSync(join(folder, "node_modules"))) return {};
  const lock = nodeLockSchema.parse(JSON.parse(readText(join(folder, "node_modules", ".package-lock.json"))));
  const top = Object.entries(lock.packages).flatMap(([path, { version }]): [string, string][] => {
    const name = /^node_modules\/((?:@[^/]+\/)?[^/]+)$/u.exec(path)?.[1];
    return name === undefined || version === undefined ? [] : [[name, version]];
  });
  return sorted(top);
}

/**
 * The pins of a requirements.txt, but for those of other platforms (`; sys_platform == "linux"`), which may not apply.
 * @throws RootstepError DATA_INVALID for a line that is no pin: packages are installed without resolving dependencies
 */
export function pinnedPackages(file: string): PackageVersions {
  const pins = readText(file)
    .split("\n")
    .map((line, index) => ({ text: line.replace(/\s*#.*$/u, "").trim(), line: index + 1 }))
    .filter(({ text }) => text !== "" && !text.startsWith("--") && !text.includes(";"));
  return sorted(
    pins.map(({ text, line }): [string, string] => {
      const [, name, version] = /^([\w.-]+)==(\S+)$/u.exec(text) ?? [];
      if (name === undefined || version === undefined) {
        throw new RootstepError("DATA_INVALID", {
          what: `"${text}" is no pinned package`,
          where: `${file}:${line}`,
          hint: "Write name==version, for every package the system needs.",
        });
      }
      return [normalised(name), version];
    }),
  );
}

/** What differs, to read: `openai 2.1.0 → 2.2.0`, `httpx 0.28.1 → not there`. */
export function packageDifferences(recorded: PackageVersions, now: PackageVersions): readonly string[] {
  const names = [...new Set([...Object.keys(recorded), ...Object.keys(now)])].sort();
  return names
    .filter((name) => recorded[name] !== now[name])
    .map((name) => `${name} ${recorded[name] ?? "not there"} → ${now[name] ?? "not there"}`);
}

const normalised = (name: string): string => name.toLowerCase().replace(/[-_.]+/gu, "-");

function sorted(entries: readonly (readonly [string, string])[]): PackageVersions {
  return Object.fromEntries([...entries].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)));
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    throw new RootstepError("FILE_MISSING", { what: "the list of packages is not there", where: file, cause });
  }
}
