import { existsSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { shippedPath } from "../../src/package-root.ts";
import { parseAction } from "../../synth/proxy/action.ts";
import { identityFaults } from "../../synth/proxy/identity.ts";
import { recordProgram } from "../../synth/proxy/record-program.ts";
import { type ReplayProgramOptions, replayProgram } from "../../synth/proxy/replay-program.ts";
import { loadTape } from "../../synth/tape/loader.ts";
import { validateTape } from "../../synth/tape/validate.ts";
import { startServer } from "../models/loopback.ts";
import { completion, freshFolder, TOKEN } from "../synth/proxy-setting.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { cli } from "./run-cli.ts";

let open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const server of open) await server.close();
  open = [];
});

const PROGRAMS = shippedPath("tests", "synth", "tool-programs");
const ROOTSTEP = shippedPath("dist", "src", "cli", "bin.js");
let runs = 0;

/** Records the agent with an MCP server behind the wrapper; `again` replays it. `starts` counts how often the server ran. */
async function recorded(tools: readonly [string, Record<string, number>?][]) {
  const marker = join(temporaryFolder("mcp"), "starts");
  const model = await startServer(({ body }, response) => {
    response.end(completion(`re: ${JSON.parse(body).messages.at(-1).content}`));
  });
  open.push(model);
  const server = ["node", join(PROGRAMS, "calculator.mjs"), marker];
  const options = {
    command: ["node", join(PROGRAMS, "agent.mjs"), "node", ROOTSTEP, "mcp-tape", "calc", "--", ...server],
    env: { PATH: process.env.PATH, TOOLS: JSON.stringify(tools) },
    cwd: PROGRAMS,
    timeLimitMs: 120_000,
    token: TOKEN,
    version: "0.0.0",
    now: () => new Date(0),
    upstream: new URL(model.url),
  };
  const folder = freshFolder("tape");
  const run = `mcp-${process.pid}-${runs++}`;
  const report = await recordProgram({ ...options, out: folder, run });
  return {
    report,
    folder,
    answer: JSON.parse(report.answer ?? "null"),
    starts: () => (existsSync(marker) ? readFileSync(marker, "utf8").split("\n").length - 1 : 0),
    again: (more: Partial<ReplayProgramOptions> = {}) => replayProgram({ ...options, tape: loadTape(folder), ...more }),
  };
}

describe("an MCP server over stdio behind rootstep mcp-tape", () => {
  it("is recorded, and replayed without being started: results, progress, failures", async () => {
    const { report, answer, folder, starts, again } = await recorded([
      ["add", { a: 20, b: 22 }],
      ["count"],
      ["count"],
      ["fail"],
    ]);
    expect(report.exitCode).toBe(0);
    expect(answer.slice(0, 4)).toEqual([
      ["re: before add", "42", false, 1],
      ["re: before count", "1", false],
      ["re: before count", "2", false],
      ["re: before fail", expect.stringContaining("broken"), true],
    ]);
    expect(starts()).toBe(1);
    expect(validateTape(folder).faults).toEqual([]);
    const tape = loadTape(folder);
    expect(tape.tools.map(({ tool, request }) => `${tool} ${request.method}`)).toContain("calc STDIO");
    expect(report.toolExchanges).toBe(6); // the handshake's two, and the calls

    const replay = await again();
    expect(identityFaults(replay)).toEqual([]);
    expect(replay.tools).toEqual({ recorded: 6, levels: { L0: 6, L1: 0, L2: 0 }, live: 0, unplayed: 0 });
    expect(starts()).toBe(1);
  });

  it("is live after the cut, having heard the handshake; before it nothing is", async () => {
    const { starts, again, answer } = await recorded([["count"], ["count"], ["add", { a: 1, b: 2 }]]);
    expect(answer[1]).toEqual(["re: before count", "2", false]);
    const replay = await again({ cut: { at: 1, action: parseAction("changed") } });
    expect(replay.stopped).toBeUndefined();
    // The first count is from the tape; the second asks a server that has not counted yet.
    expect(JSON.parse(replay.answer ?? "null").slice(0, 3)).toEqual([
      ["re: before count", "1", false],
      ["changed", "1", false],
      ["re: before add", "3", false, 1],
    ]);
    expect(replay.tools).toMatchObject({ live: 2, unplayed: 0 });
    expect(starts()).toBe(2);
  });

  it("may ask its client's model: the recorded request, and what followed the client's answer", async () => {
    const { answer, again, starts } = await recorded([["ask"]]);
    expect(answer[0]).toEqual(["re: before ask", "the model said re: sampling: what now?", false]);
    const replay = await again();
    expect(identityFaults(replay)).toEqual([]);
    expect(replay.liveCalls).toBe(0);
    expect(starts()).toBe(1);
  });

  it("that dies is on tape as it died", async () => {
    const { answer, folder, again, starts } = await recorded([["count"], ["die"]]);
    expect(answer.at(-1)).toMatch(/^error: .*closed/iu);
    expect(loadTape(folder).tools.at(-1)?.response.outcome).toBe("cut");
    const replay = await again();
    expect(identityFaults(replay)).toEqual([]);
    expect(starts()).toBe(1);
  });

  it("stops the replay where its client asks something else", async () => {
    const { again, starts } = await recorded([["add", { a: 1, b: 2 }]]);
    const replay = await again({ env: { PATH: process.env.PATH, TOOLS: '[["add",{"a":1,"b":3}]]' } });
    expect(replay.stopped?.code).toBe("REPLAY_DIVERGED");
    expect(replay.stopped?.what).toContain("body.params.arguments.b");
    expect(replay.answer).toContain("body.params.arguments.b"); // the program is told as well
    expect(starts()).toBe(1);
  });

  it.each([
    [["mcp-tape", "calc"], "no MCP server is named"],
    [["mcp-tape", "A b", "--", "node"], "names no tool"],
    [["mcp-tape", "calc", "--", "node"], "no run is under way"],
  ] as const)("%j is refused", async (args, text) => {
    const { code, stderr, stdout } = await cli(args, { HOME: tmpdir() });
    expect(stderr).toContain(text);
    expect(stdout).toBe("");
    expect(code).toBe(2);
  });
});
