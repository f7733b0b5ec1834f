import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** The suites on real servers take longest: begun last, they would leave the other worker idle. */
class EnginesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isEngines = ({ moduleId }: TestSpecification): boolean => moduleId.includes("/tests/engines/");
    const sorted = await super.sort(files);
    return [...sorted.filter(isEngines), ...sorted.filter((file) => !isEngines(file))];
  }
}

export default defineConfig({
  test: {
    include: ["tests/**/*.test.ts"],
    testTimeout: 300_000,
    hookTimeout: 300_000,
    maxWorkers: 2,
    sequence: { sequencer: EnginesFirst },
  },
});
