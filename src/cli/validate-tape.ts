import { existsSync } from "node:fs";
import { join } from "node:path";
import { TAPE_FILE } from "../../synth/tape/folder-schema.ts";
import { validateTape } from "../../synth/tape/validate.ts";
import { EXIT, type ExitCode } from "../errors.ts";
import type { CommandContext } from "./command.ts";

export function isTape(path: string): boolean {
  return existsSync(join(path, TAPE_FILE));
}

/** Lists every fault of a tape; exit code 1 if there is one. */
export function printTapeValidation(path: string, context: CommandContext): ExitCode {
  const { calls, tools, bodies, ended, faults, torn } = validateTape(path);
  const exchanges = tools === 0 ? "" : `, ${tools} exchanges with tools`;
  const lines = [
    `tape: ${calls} calls${exchanges}, ${bodies} bodies, ${ended ? "ended" : "interrupted"}; ${faults.length} faults`,
    ...faults.map(({ where, what, code }) => `  ${where}: ${what} [${code}]`),
    ...torn.map((line) => `  left out: ${line}`),
  ];
  context.print({ format: "tape", calls, tools, bodies, ended, faults, torn }, lines.join("\n"));
  return faults.length === 0 ? EXIT.ok : EXIT.failed;
}
