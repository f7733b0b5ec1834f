/**
 * How fast tapes are recorded and replayed, beside peers from PyPI, in one run of at most five minutes.
 *
 * usage: npx tsx scripts/bench/replay.ts [--json FILE] [--no-peers] [--rounds 5] [--memory-calls 100000]
 *
 * README.md beside this file says what is measured and how. The measured code is compiled first, as the package is: tsx
 * gives every closure its name as it is made, which costs a replayed request about 85 µs of CPU in place of 53.
 */
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..");
const folder = mkdtempSync(join(tmpdir(), "rootstep-bench-"));
try {
  const compiled = compile(folder);
  const main = join(compiled, "scripts", "bench", "replay-figures.js");
  const child = spawn(process.execPath, [main, ...process.argv.slice(2)], {
    stdio: "inherit",
    env: {
      ...process.env,
      ROOTSTEP_BENCH_FOLDER: folder,
      ROOTSTEP_BENCH_PEERS: join(root, "scripts", "bench", "peers"),
    },
  });
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => child.kill(signal));
  process.exitCode = await new Promise<number>((resolve) => child.once("exit", (code) => resolve(code ?? 1)));
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function compile(into: string): string {
  const outDir = join(into, "js");
  const bench = (name: string): string => join(root, "scripts", "bench", name);
  const project = {
    extends: join(root, "tsconfig.json"),
    compilerOptions: { noEmit: false, noCheck: true, rootDir: root, outDir },
    files: ["replay-figures.ts", "replay-server.ts", "replay-in-process.ts"].map(bench),
    include: [],
  };
  mkdirSync(outDir);
  writeFileSync(join(into, "tsconfig.json"), JSON.stringify(project));
  writeFileSync(join(outDir, "package.json"), JSON.stringify({ type: "module" }));
  symlinkSync(join(root, "node_modules"), join(into, "node_modules"));
  const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
  const { status } = spawnSync(process.execPath, [tsc, "-p", join(into, "tsconfig.json")], { stdio: "inherit" });
  if (status !== 0) throw new Error("the benchmark does not compile");
  return outDir;
}
