import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterEach, describe, expect, it } from "vitest";
import { isError } from "../../src/errors.ts";
import { shippedPath } from "../../src/package-root.ts";
import type { Kept } from "../../synth/ledger/kept.ts";
import { type Lease, type Ledger, openLedger } from "../../synth/ledger/ledger.ts";
import { readRunStatus } from "../../synth/ledger/read.ts";

const folders: string[] = [];
const open: Ledger[] = [];

function freshFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "rootstep-ledger-"));
  folders.push(folder);
  return folder;
}

function ledgerIn(folder: string, now: () => number = () => 0): Ledger {
  const ledger = openLedger({
    file: join(folder, "ledger.sqlite"),
    lockFile: join(folder, "coordinator.lock"),
    coordinator: { host: "here", pid: process.pid, since: "2026-01-01T00:00:00Z" },
    newRunId: () => "run-1",
    now,
  });
  open.push(ledger);
  return ledger;
}

function close(ledger: Ledger): void {
  open.splice(open.indexOf(ledger), 1);
  ledger.close();
}

afterEach(() => {
  for (const ledger of open.splice(0)) ledger.close();
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

const cost = (calls: number) => ({ calls, promptTokens: 10 * calls, completionTokens: calls, nanos: 7 * calls });
const done = (calls: number) => ({ state: "done", result: '{"a":1}', cost: cost(calls), worker: "w" }) as const;
const dead = { state: "dead", code: "REPLAY_DIVERGED", reason: "asked for something else", worker: "w" } as const;
const probe = (replicate: number, success = true): Kept => ({
  kind: "probe",
  trajectory: "t",
  step: 3,
  arm: "treated",
  edit: "abc",
  replicate,
  success,
  liveCalls: 4,
  cost: cost(4),
});

const totalCalls = (folder: string): number => readRunStatus(folder).stages.reduce((sum, s) => sum + s.cost.calls, 0);

describe("the ledger", () => {
  it("takes a result once: a second one for the same lease, and one of an old lease, are of no account", () => {
    const folder = freshFolder();
    const ledger = ledgerIn(folder);
    ledger.register("search", ["a"]);
    const first = ledger.lease("search", "a");
    expect(ledger.end(first, { state: "lost", reason: "its worker died" }, [])).toBe(true);
    const second = ledger.lease("search", "a");
    expect(second.fence).toBeGreaterThan(first.fence);
    // The worker that was taken for dead comes back with its result.
    expect(ledger.end(first, done(100), [probe(0)])).toBe(false);
    expect(ledger.kept("search", "a")).toEqual([]);
    expect(ledger.end(second, done(5), [])).toBe(true);
    expect(ledger.end(second, done(5), [])).toBe(false);
    expect(() => ledger.lease("search", "a")).toThrow("not there to be leased");
    expect(totalCalls(folder)).toBe(5);
  });

  it("keeps one part per name, the first, and gives it back with its cost", () => {
    const ledger = ledgerIn(freshFolder());
    ledger.register("search", ["a", "b"]);
    const answer: Kept = {
      kind: "answer",
      trajectory: "t",
      request: "r",
      response: { content: "{}", toolCalls: [], finishReason: "stop", model: "m" },
      cost: { ...cost(1), nanos: null },
    };
    ledger.keep({ stage: "search", key: "a" }, probe(0));
    ledger.keep({ stage: "search", key: "a" }, probe(0, false));
    ledger.keep({ stage: "search", key: "a" }, answer);
    expect(ledger.kept("search", "a")).toEqual([probe(0), answer]);
    expect(ledger.kept("search", "b")).toEqual([]);
  });

  it("counts attempts, keeps reasons, and revives the dead with a clean slate", () => {
    const folder = freshFolder();
    const ledger = ledgerIn(folder);
    ledger.register("search", ["a", "b"]);
    const fail = { state: "failed", code: "MODEL_TIMEOUT", reason: "no answer", worker: "w" } as const;
    ledger.end(ledger.lease("search", "a"), fail, []);
    ledger.end(ledger.lease("search", "a"), dead, []);
    ledger.end(ledger.lease("search", "b"), { state: "lost", reason: "its worker died" }, []);
    expect(ledger.units("search")).toMatchObject([
      { key: "a", state: "dead", attempts: 2, losses: 0, code: "REPLAY_DIVERGED", reason: "asked for something else" },
      { key: "b", state: "queued", attempts: 0, losses: 1 },
    ]);
    expect(readRunStatus(folder).dead).toMatchObject([{ stage: "search", key: "a", attempts: 2, worker: "w" }]);
    expect(() => ledger.lease("search", "a")).toThrow("not there to be leased");
    expect(ledger.revive()).toBe(1);
    expect(ledger.units("search")[0]).toMatchObject({ state: "queued", attempts: 0 });
  });

  it("adopts what only a journal has, and never overwrites what it has itself", () => {
    const ledger = ledgerIn(freshFolder());
    ledger.register("record", ["a", "b"]);
    ledger.end(ledger.lease("record", "a"), done(1), []);
    ledger.adopt("record", "a", '{"other":true}');
    ledger.adopt("record", "b", '{"b":1}');
    expect(ledger.units("record").map(({ state, result }) => [state, result])).toEqual([
      ["done", '{"a":1}'],
      ["done", '{"b":1}'],
    ]);
  });

  it("does not end leases by the clock: a jump of years changes nothing but time stamps", () => {
    const folder = freshFolder();
    let now = Date.parse("2026-01-01");
    const ledger = ledgerIn(folder, () => now);
    ledger.register("search", ["a", "b"]);
    const [a, b] = [ledger.lease("search", "a"), ledger.lease("search", "b")];
    now += 10 * 365 * 24 * 3600_000;
    expect(ledger.end(a, done(1), [])).toBe(true);
    now -= 20 * 365 * 24 * 3600_000;
    expect(ledger.end(b, done(1), [])).toBe(true);
    expect(readRunStatus(folder).stages[0]).toMatchObject({ units: { done: 2, leased: 0 }, cost: { calls: 2 } });
  });

  it("tells rate, time left and calls under way", () => {
    const folder = freshFolder();
    let now = 0;
    const ledger = ledgerIn(folder, () => now);
    ledger.register("search", ["a", "b", "c", "d", "e"]);
    for (const key of ["a", "b", "c"]) {
      now += 10_000;
      ledger.end(ledger.lease("search", key), done(3), []);
    }
    ledger.lease("search", "d");
    ledger.keep({ stage: "search", key: "d" }, probe(0));
    ledger.sync();
    const [search] = readRunStatus(folder).stages;
    // Three units between second 10 and second 30.
    expect(search).toMatchObject({ total: 5, callsUnderWay: 4, perSecond: 0.15, cost: { calls: 9, nanos: 63 } });
    expect(search?.secondsLeft).toBeCloseTo(2 / 0.15);
  });
});

describe("a second coordinator", () => {
  it("is refused while the first lives, by name, in this process and in another", () => {
    const folder = freshFolder();
    const first = ledgerIn(folder);
    expect(() => ledgerIn(folder)).toThrow(`process ${process.pid} on here`);
    const other = spawnSync(process.execPath, ["--input-type=module", "-e", openerScript(folder)], {
      encoding: "utf8",
    });
    expect(other.stdout).toContain("RUN_LOCKED");
    close(first);
    expect(ledgerIn(folder).epoch).toBe(first.epoch + 1);
  });

  it("takes over at once from one that was killed, and the leases go on", async () => {
    const folder = freshFolder();
    const script = `${openerScript(folder)}
      ledger.register("search", ["a"]); ledger.lease("search", "a"); console.log("leased"); setInterval(() => {}, 1000);`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    await once(child.stdout, "data");
    expect(() => ledgerIn(folder)).toThrow("coordinates this run");
    const gone = once(child, "close");
    child.kill("SIGKILL");
    await gone;
    const ledger = ledgerIn(folder);
    const [unit] = ledger.units("search");
    expect(unit).toMatchObject({ state: "leased", fence: 1 });
    expect(ledger.end({ stage: "search", key: "a", fence: 1 }, done(1), [])).toBe(true);
  });

  it("that got past the lock leaves the first without a say: its epoch is over", () => {
    const folder = freshFolder();
    const first = ledgerIn(folder);
    first.register("search", ["a"]);
    const lease: Lease = first.lease("search", "a");
    const database = new Database(join(folder, "ledger.sqlite"));
    database.exec("UPDATE owner SET epoch = epoch + 1");
    database.close();
    expect(() => first.end(lease, done(1), [])).toThrow("another coordinator has taken over");
    expect(readRunStatus(folder).stages[0]?.units.done).toBe(0);
  });
});

/** Opens the ledger of a folder from the built sources, as `ledger`; prints the code of the error if it cannot. */
function openerScript(folder: string): string {
  return `
    const { openLedger } = await import(${JSON.stringify(shippedPath("dist", "synth", "ledger", "ledger.js"))});
    let ledger;
    try {
      ledger = openLedger({ file: ${JSON.stringify(join(folder, "ledger.sqlite"))}, lockFile: ${JSON.stringify(join(folder, "coordinator.lock"))},
        coordinator: { host: "there", pid: process.pid, since: "now" }, newRunId: () => "run-1", now: () => 0 });
    } catch (error) { console.log(error.code); process.exit(0); }`;
}

describe("a ledger that cannot be used", () => {
  it("of another version is refused, by writers and readers", () => {
    const folder = freshFolder();
    close(ledgerIn(folder));
    const database = new Database(join(folder, "ledger.sqlite"));
    database.pragma("user_version = 99");
    database.close();
    expect(() => ledgerIn(folder)).toThrow("the ledger has version 99, this rootstep writes version 2");
    expect(() => readRunStatus(folder)).toThrow("version 99");
  });

  it("that is damaged or no database at all is named as such", () => {
    const folder = freshFolder();
    writeFileSync(
      join(folder, "ledger.sqlite"),
      "this is not a database, though it is long enough to look like a file",
    );
    expect(codeOf(() => ledgerIn(folder))).toBe("RUN_CORRUPT");
    expect(codeOf(() => readRunStatus(folder))).toBe("RUN_CORRUPT");
  });

  it("that is not there is not made by asking for its status", () => {
    expect(codeOf(() => readRunStatus(freshFolder()))).toBe("FILE_MISSING");
  });
});

const codeOf = (action: () => unknown): string => {
  try {
    action();
  } catch (error) {
    return isError(error, "RUN_CORRUPT") || isError(error, "FILE_MISSING") || isError(error, "FILE_UNREADABLE")
      ? error.code
      : String(error);
  }
  return "no error";
};

describe("a full disk", () => {
  const mount = (folder: string, options: string): boolean =>
    spawnSync("mount", ["-t", "tmpfs", "-o", options, "tmpfs", folder]).status === 0;
  const mayMount = ((): boolean => {
    const folder = mkdtempSync(join(tmpdir(), "rootstep-mount-"));
    const mounted = mount(folder, "size=64k");
    if (mounted) spawnSync("umount", [folder]);
    rmSync(folder, { recursive: true });
    return mounted;
  })();
  if (!mayMount) console.log("skipped: a full disk: no right to mount a small one here");

  it.runIf(mayMount)(
    "ends in an error that says so; what was booked before stays, and the run goes on when there is room",
    () => {
      const disk = join(freshFolder(), "disk");
      mkdirSync(disk);
      expect(mount(disk, "size=256k")).toBe(true);
      try {
        const ledger = ledgerIn(disk);
        const keys = Array.from({ length: 60 }, (_, index) => `unit-${index}`);
        ledger.register("search", keys);
        const large = JSON.stringify({ text: "x".repeat(10_000) });
        let booked = 0;
        let code = "";
        for (const key of keys) {
          code = codeOf(() => {
            ledger.end(ledger.lease("search", key), { ...done(1), result: large }, []);
            booked++;
          });
          if (code !== "no error") break;
        }
        expect(code).toBe("FILE_UNREADABLE");
        expect(booked).toBeGreaterThan(0);
        expect(ledger.units("search").filter(({ state }) => state === "done")).toHaveLength(booked);
        close(ledger);
        expect(spawnSync("mount", ["-o", "remount,size=16m", disk]).status).toBe(0);
        const again = ledgerIn(disk);
        for (const { key, state, fence } of again.units("search")) {
          if (state === "done") continue;
          const lease = state === "leased" ? { stage: "search", key, fence } : again.lease("search", key);
          expect(again.end(lease, { ...done(1), result: large }, [])).toBe(true);
        }
        close(again);
        expect(readRunStatus(disk).stages[0]).toMatchObject({ units: { done: 60 }, cost: { calls: 60 } });
      } finally {
        for (const ledger of open.splice(0)) ledger.close();
        spawnSync("umount", [disk]);
      }
    },
  );
});
