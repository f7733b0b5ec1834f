import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readPredictions } from "../../src/evaluation/prediction-file.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { prediction } from "./predictions.ts";

function file(text: string): string {
  const path = join(temporaryFolder("predictions"), "predictions.jsonl");
  writeFileSync(path, text);
  return path;
}
const line = (id: string): string => `${JSON.stringify(prediction(id, "A", 0))}\n`;

describe("readPredictions", () => {
  it("gives every line in file order, those of one log as well", () => {
    const { predictions, torn } = readPredictions(file(`${line("a")}\n${line("b")}${line("a")}`));
    expect(predictions.map(({ itemId }) => itemId)).toEqual(["a", "b", "a"]);
    expect(torn).toBe(false);
  });

  it("holds none where there is no file, and another checksum than one with lines", () => {
    const none = readPredictions("/no/such/predictions.jsonl");
    expect(none.predictions).toEqual([]);
    // sha256 of nothing.
    expect(none.sha256).toBe("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    expect(readPredictions(file(line("a"))).sha256).not.toBe(none.sha256);
  });

  it("leaves a torn last line out and in the file", () => {
    const path = file(`${line("a")}{"itemId":"b`);
    expect(readPredictions(path)).toMatchObject({ torn: true, predictions: [{ itemId: "a" }] });
    expect(readPredictions(path).torn).toBe(true);
  });

  it.each([
    ["what is not JSON", "{nope}\n", /:2$/u],
    ["a field of another type", `${JSON.stringify({ ...prediction("b", "A", 0), step: "1" })}\n`, /:2 step$/u],
    ["a field that predictions do not have", `${JSON.stringify({ ...prediction("b", "A", 0), score: 1 })}\n`, /:2$/u],
  ])("names the line of %s", (_, broken, where) => {
    expect(() => readPredictions(file(`${line("a")}${broken}${line("c")}`))).toThrow(
      expect.objectContaining({ code: "RUN_CORRUPT", where: expect.stringMatching(where) }),
    );
  });
});
