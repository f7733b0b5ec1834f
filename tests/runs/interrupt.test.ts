import { EventEmitter } from "node:events";
import { describe, expect, it } from "vitest";
import { throwIfInterrupted } from "../../src/interruption.ts";
import { interruptSignal } from "../../src/runs/interrupt.ts";

/** Stands in for the process: takes signals, remembers exits. */
function fakeProcess(): { readonly target: NodeJS.Process; readonly emitter: EventEmitter; readonly exits: number[] } {
  const exits: number[] = [];
  const emitter = Object.assign(new EventEmitter(), { exit: (code: number) => void exits.push(code) });
  return { target: emitter as unknown as NodeJS.Process, emitter, exits };
}

describe("Ctrl-C", () => {
  it("asks to drain once and stops at once the second time", () => {
    const { target, emitter, exits } = fakeProcess();
    const said: string[] = [];
    const { signal, dispose } = interruptSignal((line) => said.push(line), target);
    throwIfInterrupted(signal);
    emitter.emit("SIGINT");
    expect(signal.aborted).toBe(true);
    expect(said).toHaveLength(1);
    expect(exits).toEqual([]);
    expect(() => throwIfInterrupted(signal)).toThrow(expect.objectContaining({ code: "INTERRUPTED", exit: 130 }));
    emitter.emit("SIGINT");
    expect(exits).toEqual([130]);
    dispose();
    expect(emitter.listenerCount("SIGINT") + emitter.listenerCount("SIGTERM")).toBe(0);
  });
});
