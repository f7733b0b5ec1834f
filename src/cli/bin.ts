#!/usr/bin/env node
import { main } from "./main.ts";

process.exitCode = await main(process.argv.slice(2), {
  env: process.env,
  now: () => new Date(),
  stdout: process.stdout,
  stderr: process.stderr,
});
