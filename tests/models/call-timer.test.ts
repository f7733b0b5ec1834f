import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { startCallTimer, type TimeLimit } from "../../src/models/call-timer.ts";

const expired: string[] = [];
const timer = (ms = 1000) => startCallTimer({ name: "whole", ms }, ({ name }: TimeLimit) => expired.push(name));

beforeEach(() => {
  vi.useFakeTimers();
  expired.length = 0;
});
afterEach(() => vi.useRealTimers());

it("ends a phase at its own limit, though a longer one was begun before it", () => {
  const limits = timer();
  limits.phase({ name: "first", ms: 500 });
  vi.advanceTimersByTime(100);
  limits.phase({ name: "idle", ms: 50 });
  vi.advanceTimersByTime(49);
  expect(expired).toEqual([]);
  vi.advanceTimersByTime(2);
  expect(expired).toEqual(["idle"]);
});

it("lets phases follow each other as long as the whole may take, with one timer", () => {
  const limits = timer();
  for (let i = 0; i < 25; i++) {
    limits.phase({ name: "idle", ms: 50 });
    expect(vi.getTimerCount()).toBe(1);
    vi.advanceTimersByTime(40);
  }
  expect(expired).toEqual(["whole"]);
});

it("has no phase at rest, and nothing after its end", () => {
  const limits = timer();
  limits.phase({ name: "idle", ms: 50 });
  limits.rest();
  vi.advanceTimersByTime(900);
  expect(expired).toEqual([]);
  limits.stop();
  vi.advanceTimersByTime(900);
  expect(expired).toEqual([]);
  expect(vi.getTimerCount()).toBe(0);
});
