import { RootstepError } from "../errors.ts";
import { type Argument, type Arguments, type CommandContext, optionalString } from "./command.ts";

const VARIABLE = "ROOTSTEP_REDIS_URL";

/** `--redis URL`. An argument, not a setting: the URL may hold a password and never goes into a run folder. */
export function redisArgument(describe: string): Argument {
  return { name: "redis", describe: `${describe}: redis://[user:password@]host:port (${VARIABLE})`, type: "string" };
}

export function redisUrl(args: Arguments, { env }: Pick<CommandContext, "env">): string | undefined {
  return optionalString(args, "redis") ?? env[VARIABLE];
}

/** @throws RootstepError USAGE */
export function requiredRedisUrl(args: Arguments, context: Pick<CommandContext, "env">): string {
  const url = redisUrl(args, context);
  if (url === undefined) {
    throw new RootstepError("USAGE", { what: "no Redis is named", where: `flag --redis or variable ${VARIABLE}` });
  }
  return url;
}
