import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createConnection, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, it } from "vitest";

const installed = spawnSync("redis-server", ["--version"]).status === 0;

/** Tests that need a real Redis. Where none is installed they are skipped and say so; in CI that is a failure. */
export function describeWithRedis(name: string, tests: () => void): void {
  if (installed) describe(name, tests);
  else if (process.env.ROOTSTEP_REQUIRE_SERVICES === "1") {
    it(`${name}: needs redis-server`, () => {
      throw new Error("redis-server is not installed and ROOTSTEP_REQUIRE_SERVICES=1");
    });
  } else {
    console.log(`skipped: ${name}: redis-server is not installed (apt-get install redis-server)`);
    describe.skip(name, tests);
  }
}

export interface RedisServer {
  readonly url: string;
  readonly port: number;
  readonly child: ChildProcess;
  /** Starts it again on the same port and folder, after it was killed or stopped. */
  restart(): Promise<void>;
  /** SIGKILL; resolves when it is gone. */
  kill(): Promise<void>;
  /** Ends it and removes its folder. */
  stop(): Promise<void>;
}

/** A redis-server of our own on a free port with a folder of its own. Later flags override `noeviction` and no persistence. */
export async function startRedis(flags: readonly string[] = []): Promise<RedisServer> {
  const folder = mkdtempSync(join(tmpdir(), "rootstep-redis-"));
  const port = await freePort();
  const args = [
    ...["--port", String(port), "--bind", "127.0.0.1", "--dir", folder, "--save", "", "--appendonly", "no"],
    ...["--maxmemory-policy", "noeviction", ...flags],
  ];
  const start = async (): Promise<ChildProcess> => {
    for (let attempt = 1; ; attempt++) {
      const started = spawn("redis-server", args, { stdio: ["ignore", "pipe", "pipe"] });
      let log = "";
      started.stdout.on("data", (part: Buffer) => {
        log = `${log}${part}`.slice(-2000);
      });
      while (started.exitCode === null) {
        if (await answers(port)) return started;
        await sleep(10);
      }
      if (attempt === 20) throw new Error(`redis-server ended with ${started.exitCode}:\n${log}`);
      await sleep(50);
    }
  };
  let child = await start();
  const kill = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, "close");
    child.kill("SIGKILL");
    await gone;
  };
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    get child() {
      return child;
    },
    async restart() {
      child = await start();
    },
    kill,
    async stop() {
      await kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/**
 * Redis cannot pick a port itself. Not from the range of outgoing connections: a client that tries again and again while
 * Redis is down would one day get that very port, connect to itself, and keep Redis from coming back.
 */
async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(20_000, 32_000);
    const probe = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      probe.once("error", () => resolve(false));
      probe.listen(port, "127.0.0.1", () => resolve(true));
    });
    if (!isFree) continue;
    probe.close();
    await once(probe, "close");
    return port;
  }
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection(port, "127.0.0.1");
    const end = (answer: boolean): void => {
      socket.destroy();
      resolve(answer);
    };
    socket.once("error", () => end(false));
    socket.once("connect", () => socket.write("PING\r\n"));
    socket.once("data", () => end(true));
  });
}
