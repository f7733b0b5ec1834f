import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, it } from "vitest";
import { shippedPath } from "../../src/package-root.ts";
import { loadTape } from "../../synth/tape/loader.ts";
import { ownFolder } from "./fetch-setting.ts";

const module = (...path: readonly string[]): string => JSON.stringify(pathToFileURL(shippedPath(...path)).href);
const BODY = JSON.stringify({ text: "y".repeat(30_000) });

const IN_PROCESS = `
  import { recordingFetch } from ${module("synth", "fetch", "recording.ts")};
  const upstream = new URL("http://model.test/v1");
  const about = { out: process.argv[2], run: "full", version: "0.0.0", now: () => new Date(0), upstream };
  const front = recordingFetch({ ...about, fetch: async () => new Response(body("same")) });
  const ask = (n) => front.fetch("http://model.test/v1/chat/completions", { method: "POST", body: body(n) });
  const finish = async () => front.finish();`;

const PROXY = `
  import { createServer } from "node:http";
  import { createCallLog } from ${module("synth", "proxy", "call-log.ts")};
  import { recordHandler } from ${module("synth", "proxy", "live.ts")};
  import { endTape } from ${module("synth", "proxy", "record-program.ts")};
  import { serveProxy } from ${module("synth", "proxy", "server.ts")};
  import { createUpstream } from ${module("synth", "proxy", "upstream.ts")};
  import { tapeHeader } from ${module("synth", "tape", "header.ts")};
  import { createTapeWriter } from ${module("synth", "tape", "writer.ts")};
  const server = createServer((request, response) => request.resume().on("end", () => response.end(body("same"))));
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const upstream = createUpstream({ base: new URL("http://127.0.0.1:" + server.address().port) });
  const about = { run: "full", upstream: upstream.shown, command: [], version: "0.0.0", now: () => new Date(0) };
  const writer = createTapeWriter(process.argv[2], tapeHeader(about));
  const handler = recordHandler(upstream, createCallLog({ writer, redact: (text) => text }));
  const proxy = await serveProxy({ run: "full", token: "token-of-the-run", handler });
  const ask = (n) => fetch(proxy.baseUrl + "/chat/completions",
    { method: "POST", body: body(n), headers: { authorization: "Bearer token-of-the-run" } });
  const finish = async () => {
    await proxy.close();
    await upstream.close();
    server.close();
    endTape(writer, { exitCode: 0, signal: null, timedOut: false, stdout: Buffer.from(body("end")) }, (text) => text);
  };`;

describe("a disk that is full while recording", () => {
  it.each([
    ["in process", IN_PROCESS, "FILE_UNREADABLE"],
    ["through the proxy", PROXY, "TypeError"],
  ])("%s: the program gets no answer that is not on tape, and the recording fails", (_, front, failure) => {
    const file = ownFolder("program.mts");
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(
      file,
      `const body = (n) => JSON.stringify({ n, text: "y".repeat(30_000) });
      ${front}
      for (let n = 0; n < 8; n++) {
        const asked = ask(n).then((response) => response.text()).then((text) => text.length);
        console.log(await asked.catch((error) => error.code ?? error.name));
      }
      await finish().catch((error) => console.log(error.code));`,
    );
    // No file of the program may grow beyond 150 blocks.
    const tsx = pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href;
    const limited = ["-c", 'ulimit -f 150; exec "$0" "$@"', process.execPath, "--import", tsx, file];
    const out = join(dirname(file), "tape");
    const { stdout, stderr } = spawnSync("bash", [...limited, out], { encoding: "utf8", timeout: 120_000 });
    expect(stderr).toBe("");
    const seen = stdout.trim().split("\n");
    const answered = seen.findIndex((line) => !/^\d+$/u.test(line));
    expect(answered).toBeGreaterThan(0);
    const lost = Array(8 - answered).fill(failure);
    const whole = String(BODY.length + ',"n":"same"'.length);
    expect(seen).toEqual([...Array(answered).fill(whole), ...lost, "FILE_UNREADABLE"]);
    expect(loadTape(out).calls).toHaveLength(answered);
  });
});
