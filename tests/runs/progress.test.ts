import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import { createProgress } from "../../src/runs/progress.ts";

/** A stream that is no terminal, with what was written to it. */
function plainOutput(): { readonly output: NodeJS.WriteStream; text(): string } {
  const stream = new PassThrough();
  const parts: string[] = [];
  stream.on("data", (part: Buffer) => parts.push(part.toString()));
  return { output: stream as unknown as NodeJS.WriteStream, text: () => parts.join("") };
}

describe("progress without a terminal", () => {
  it("writes plain lines now and then, and where a resumed stage goes on", () => {
    const { output, text } = plainOutput();
    let time = 0;
    const stage = createProgress({ output, now: () => time }).stage("record", 100, 20);
    for (let i = 0; i < 80; i++) {
      time += 400;
      stage.advance();
    }
    stage.finish();
    const lines = text().trim().split("\n");
    expect(lines[0]).toBe("record: going on at 20/100");
    expect(lines.at(-1)).toBe("record: 100/100 done in 32.0 s");
    expect(lines.length).toBeLessThan(14);
    expect(text()).not.toContain("\u001b");
  });

  it("does not call done what was stopped", () => {
    const { output, text } = plainOutput();
    const stage = createProgress({ output, now: () => 0 }).stage("record", 8);
    stage.advance();
    stage.finish();
    expect(text()).toBe("record: 0/8\nrecord: stopped at 1/8 after 0.0 s\n");
  });

  it("does not write a line for each of many quick units", () => {
    const { output, text } = plainOutput();
    const stage = createProgress({ output, now: () => 0 }).stage("quick", 1000);
    for (let i = 0; i < 1000; i++) stage.advance();
    stage.finish("fine");
    expect(text()).toBe("quick: 0/1000\nquick: 1000/1000 done in 0.0 s fine\n");
  });
});
