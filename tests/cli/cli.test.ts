import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import { shippedPath } from "../../src/package-root.ts";
import { cli, freshPath, startCli } from "./run-cli.ts";

describe("the command line", () => {
  it("shows every verb, its settings with defaults and environment names", async () => {
    const help = await cli(["--help"]);
    expect(help.code).toBe(0);
    for (const verb of ["synth", "simulate", "train", "eval", "data", "list", "demo"])
      expect(help.stdout).toContain(`rootstep ${verb}`);
    const train = await cli(["train", "run", "--help"]);
    expect(train.stdout).toContain("--group-size");
    expect(train.stdout).toContain("ROOTSTEP_TRAIN_GROUP_SIZE");
    expect(train.stdout).toContain("[default: 8]");
  });

  it("lists what can be named, as a table and as JSON", async () => {
    expect((await cli(["list"])).stdout).toContain("planner-solver-verifier");
    const { stdout, stderr } = await cli(["list", "methods", "--json"]);
    expect(JSON.parse(stdout).methods.map(({ id }: { id: string }) => id)).toContain("all-at-once");
    expect(stderr).toBe("");
  });

  it.each([
    [["sinth"], "USAGE", "Did you mean synth?"],
    [["synth"], "USAGE", "Name what to synth"],
    [["synth", "run"], "USAGE", "Missing required argument: out"],
    [["synth", "run", "--out", "x", "--serch.alpha", "1"], "USAGE", "Unknown argument: serch.alpha"],
    [["synth", "run", "--out", "x", "--search.alpha", "2"], "CONFIG_INVALID", "flag --search.alpha"],
    [["synth", "run", "--out", "x", "--config", "/no/such.yaml"], "FILE_MISSING", "/no/such.yaml"],
    [["synth", "run", "--out", "x", "--tasks.set", "gsm9k"], "UNKNOWN_NAME", "known: gsm8k"],
    [["synth", "run", "--out", "x", "--search.strategies", "magic"], "UNKNOWN_NAME", "known: exhaustive, paper"],
    [["eval", "run", "--method", "oracle"], "UNKNOWN_NAME", "floor-constant-step"],
    [["eval", "run", "--method", "all-at-once"], "CONFIG_INVALID", "setting model"],
    [["eval", "score", "/no/such/run"], "FILE_MISSING", "/no/such/run"],
    [["data", "validate", "/no/such/file.jsonl"], "FILE_MISSING", "/no/such/file.jsonl"],
  ] as const)("%j is refused with what, where and what to do", async (args, code, text) => {
    const { code: exit, stderr, stdout } = await cli(args);
    expect(exit).toBe(2);
    expect(stdout).toBe("");
    expect(existsSync("x")).toBe(false);
    expect(stderr).toContain(`error ${code}: `);
    expect(stderr).toContain(text);
    expect(stderr).toMatch(/\n {2}side: .*\n {2}do: /u);
  });

  it("says when the run folder cannot be made", async () => {
    const file = freshPath("file");
    writeFileSync(file, "");
    const { code, stderr } = await cli(["synth", "run", "--out", `${file}/run`]);
    expect(code).toBe(1);
    expect(stderr).toContain("error FILE_UNREADABLE");
    expect(stderr).toContain("ENOTDIR");
  });

  it("prints errors as JSON with --json", async () => {
    const { code, stderr } = await cli(["eval", "score", "/no/such/run", "--json"]);
    expect(code).toBe(2);
    expect(JSON.parse(stderr)).toMatchObject({ error: { code: "FILE_MISSING", where: "/no/such/run", side: "user" } });
  });

  it("audits the shipped Who&When", async () => {
    const { code, stdout } = await cli(["data", "audit", shippedPath("data", "who_and_when")]);
    expect(code).toBe(0);
    expect(stdout).toContain("45 of 58");
  });

  it("validates files and ends with 1 where there is a fault, naming line and field", async () => {
    const file = freshPath("bad.jsonl");
    writeFileSync(file, '{"schemaVersion":1,"id":"a"}\n{"schemaVersion":1,\n');
    const { code, stdout } = await cli(["data", "validate", file, "--format", "tracertraj"]);
    expect(code).toBe(1);
    expect(stdout).toContain(`${file}:1`);
    expect(stdout).toContain(`${file}:2`);
  });
});

describe("eval run", () => {
  it("scores a floor method, resumes to the same result, and scores again offline", async () => {
    const out = freshPath("floor");
    const args = ["eval", "run", "--method", "floor-constant-step", "--options", "{step: 1}", "--out", out];
    const first = await cli(args);
    expect(first.code).toBe(0);
    expect(first.stdout).toContain("26.98 [20.0, 35.3] n=126");
    const scores = readFileSync(`${out}/scores.json`, "utf8");
    expect((await cli(args)).code).toBe(0);
    expect(readFileSync(`${out}/scores.json`, "utf8")).toBe(scores);
    const again = await cli(["eval", "score", out]);
    expect(again.stdout.split("\n").slice(0, 5)).toEqual(first.stdout.split("\n").slice(0, 5));
    const other = await cli([...args.slice(0, 4), "--options", "{step: 2}", "--out", out]);
    expect(other.code).toBe(2);
    expect(other.stderr).toContain("options.step was 1, now 2");
  });

  it("plans with --dry-run and does nothing", async () => {
    const out = freshPath("dry");
    const { code, stdout } = await cli(["eval", "run", "--method", "all-at-once", "--dry-run", "--out", out]);
    expect(code).toBe(0);
    expect(stdout).toContain("184 / 184 / 184");
    expect(existsSync(out)).toBe(false);
  });

  /** A server on loopback, and the evaluation of two logs on it. */
  async function evalAgainst(
    listener: RequestListener,
    more: readonly string[] = [],
    env: Record<string, string> = {},
  ) {
    const server = createServer(listener);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
    const out = freshPath("eval");
    const args = ["eval", "run", "--method", "all-at-once", "--limit", "2", "--out", out];
    const model = [
      "--model.provider",
      "openai-compatible",
      "--model.base-url",
      url,
      "--model.model",
      "m",
      "--model.retries.attempts",
      "1",
    ];
    const run = await cli([...args, ...model, ...more], env);
    await new Promise((resolve) => {
      server.close(resolve);
      server.closeAllConnections();
    });
    return { ...run, url, out, args: [...args, ...model] };
  }
  const answer =
    (content: string): RequestListener =>
    (_request, response) => {
      response.setHeader("content-type", "application/json");
      response.end(
        JSON.stringify({
          model: "m",
          choices: [{ message: { role: "assistant", content }, finish_reason: "stop" }],
          usage: { prompt_tokens: 1, completion_tokens: 2 },
        }),
      );
    };

  it("asks a model, keeps its answers, and sends the key without ever writing it", async () => {
    let authorization: string | undefined;
    const key = "sk-very-secret-0123456789";
    const { code, stdout, stderr, out } = await evalAgainst(
      (request, response) => {
        authorization = request.headers.authorization;
        answer('{"agent": "WebSurfer", "step": 1}')(request, response);
      },
      ["--model.api-key-env", "MY_KEY", "--no-model.stream"],
      { MY_KEY: key },
    );
    expect(code).toBe(0);
    expect(authorization).toBe(`Bearer ${key}`);
    const written = ["manifest.json", "predictions.jsonl", "calls.jsonl", "scores.json"].map((name) =>
      readFileSync(`${out}/${name}`, "utf8"),
    );
    for (const text of [stdout, stderr, ...written]) expect(text).not.toContain(key);
    expect(stdout).toContain("2 calls, 2 prompt and 4 completion tokens");
  });

  it.each([
    [
      "HTML",
      (_request: unknown, response: { end(text: string): void }) => response.end("<html>hi</html>"),
      "MODEL_BAD_BODY",
    ],
    ["an empty body", (_request: unknown, response: { end(text: string): void }) => response.end(""), "MODEL_BAD_BODY"],
  ] as const)("records %s as a failed call that counts as wrong", async (_, listener, code) => {
    const { code: exit, stdout, out } = await evalAgainst(listener as unknown as RequestListener);
    expect(exit).toBe(1);
    expect(stdout).toContain(`2 calls failed with ${code}`);
    expect(readFileSync(`${out}/predictions.jsonl`, "utf8")).toContain(code);
  });

  it("stops at a key that is refused, an unreachable server, a missing key", async () => {
    const refused = await evalAgainst((_request, response) => {
      response.statusCode = 401;
      response.end('{"error":{"message":"bad key"}}');
    });
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain("error MODEL_AUTH");
    // The server is closed now: the same command meets nobody, and says where.
    const unreachable = await cli(refused.args);
    expect(unreachable.code).toBe(1);
    expect(unreachable.stderr).toContain("error MODEL_UNREACHABLE");
    expect(unreachable.stderr).toContain(refused.url);
    const keyless = await cli([...refused.args, "--model.api-key-env", "NOT_SET", "--out", freshPath("keyless")]);
    expect(keyless.code).toBe(2);
    expect(keyless.stderr).toContain("NOT_SET");
  });

  it("ends with 3 at the cap on calls and goes on where it stopped", async () => {
    const capped = await evalAgainst(answer('{"agent": "x", "step": 1}'), ["--max-calls", "1", "--no-model.stream"]);
    expect(capped.code).toBe(3);
    expect(capped.stderr).toContain("error BUDGET_REACHED");
    expect(readFileSync(`${capped.out}/predictions.jsonl`, "utf8").trim().split("\n")).toHaveLength(1);
  });
});

describe("simulate", () => {
  it("serves until it is told to stop, and says when its port is taken", async () => {
    const first = startCli(["simulate", "--json"]);
    await first.seen("/v1");
    first.child.kill("SIGINT");
    const { code, stdout: printed } = await first.finished;
    expect(code).toBe(0);
    const { url, tasks } = JSON.parse(printed);
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/v1$/u);
    expect(tasks).toBe(1368);

    const holder = createServer();
    await new Promise<void>((resolve) => holder.listen(0, "127.0.0.1", resolve));
    const port = String((holder.address() as AddressInfo).port);
    const taken = await cli(["simulate", "--port", port]);
    expect(taken.code).toBe(2);
    expect(taken.stderr).toContain(`port ${port} is taken`);
    await new Promise((resolve) => holder.close(resolve));
  });
});
