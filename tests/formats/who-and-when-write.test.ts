import { mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Loss } from "../../src/formats/format.ts";
import { formatById } from "../../src/formats/registry.ts";
import { writeWhoAndWhen } from "../../src/formats/who-and-when/write.ts";
import { shippedPath } from "../../src/package-root.ts";
import type { Trajectory } from "../../src/trajectory/schema.ts";
import { anyTrajectory } from "./arbitrary-trajectory.ts";
import { readAll } from "./format.conformance.ts";
import { checkSeeded } from "./seeded.ts";

const SHIPPED = shippedPath("data", "who_and_when");
const format = { ...formatById("who-and-when"), write: writeWhoAndWhen };

/** Path → value of everything that holds no more values; empty arrays and objects count. */
function leaves(value: unknown, path = "", found = new Map<string, string>()): Map<string, string> {
  const children = typeof value === "object" && value !== null ? Object.entries(value) : [];
  if (children.length === 0) found.set(path, JSON.stringify(value));
  const isArray = Array.isArray(value);
  for (const [key, child] of children) {
    leaves(child, isArray ? `${path}[${key}]` : path === "" ? key : `${path}.${key}`, found);
  }
  return found;
}

const fold = (path: string): string => path.replace(/\[\d+\]/g, "[]");
const isWithin = (path: string, field: string): boolean => path.startsWith(field);

describe("writing Who&When", () => {
  let folder = "";
  let fresh = 0;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "rootstep-waw-write-"));
  });
  afterAll(async () => {
    await rm(folder, { recursive: true, force: true });
  });

  test("the loss report names every field that reads back otherwise, and no other", async () => {
    const labelled = anyTrajectory.filter(({ labels }) => labels.length > 0);
    const property = fc.asyncProperty(labelled, async (written) => {
      const target = join(folder, String(++fresh));
      const losses: Loss[] = [];
      await format.write([written], target, { onLoss: (loss) => losses.push(loss) });
      const { read } = await readAll(format, target);
      const before = leaves(written);
      const after = leaves(read[0]);
      const reported = (path: string): Loss[] => losses.filter(({ field }) => isWithin(fold(path), field));
      // Something more where nothing was is no loss.
      const grown = (path: string, value: string): boolean =>
        (value === "{}" || value === "[]") && [...after.keys()].some((other) => other.startsWith(path));
      const differing = [...before]
        .filter(([path, value]) => after.get(path) !== value && !grown(path, value))
        .map(([path]) => path);
      expect(differing.filter((path) => reported(path).length === 0)).toEqual([]);
      expect(losses.filter(({ field }) => !differing.some((path) => isWithin(fold(path), field)))).toEqual([]);
      const dropped = losses.filter(({ field }) => field === "labels[]").reduce((sum, { count }) => sum + count, 0);
      expect(dropped).toBe(written.labels.length - 1);
      // What the format is for is never lost.
      const kept = ({ task, steps }: Trajectory): unknown => [
        task.id,
        task.text,
        steps.map(({ agent, content }) => [agent, content]),
      ];
      expect(kept(read[0]!)).toEqual(kept(written));
    });
    await checkSeeded("who-and-when losses", property, 100);
  });

  test("a trajectory without a label is refused", async () => {
    const { read } = await readAll(format, join(SHIPPED, "Hand-Crafted", "1.json"));
    const target = join(folder, "unlabelled");
    await expect(format.write([{ ...read[0]!, labels: [] }], target)).rejects.toMatchObject({ code: "DATA_INVALID" });
    expect(await readdir(folder)).not.toContain("unlabelled");
  });

  test("a folder that holds files is not written to; an empty one is", async () => {
    const { read } = await readAll(format, join(SHIPPED, "Hand-Crafted", "1.json"));
    const target = join(folder, "there");
    await mkdir(target);
    await format.write(read, target);
    await expect(format.write(read, target)).rejects.toMatchObject({ code: "USAGE", where: target });
  });

  test("an id that climbs out of the folder does not become a path", async () => {
    const { read } = await readAll(format, join(SHIPPED, "Hand-Crafted", "1.json"));
    const target = join(folder, "inside");
    await format.write([{ ...read[0]!, id: "hand-crafted/../../../escaped" }], target);
    expect(await readdir(join(target, "Hand-Crafted"))).toEqual(["1.json"]);
  });
});
