import { expect, it } from "vitest";
import { dataLoader } from "../../src/cli/eval-folder.ts";
import { dataChoiceSchema } from "../../src/evaluation/data.ts";

it("a run with a limit says nothing of logs that it does not see", async () => {
  const load = dataLoader();
  const data = dataChoiceSchema.parse({ subset: "algorithm-generated" });
  const noted = async (limit: number | undefined): Promise<(string | undefined)[]> => {
    const { problems } = await load({ data, limit });
    return problems.map(({ itemId }) => itemId);
  };
  // Labels that are not their step's speaker: logs 14, 15 and 59.
  const all = [14, 15, 59].map((log) => `algorithm-generated/${log}`);
  expect(await noted(undefined)).toEqual(all);
  expect(await noted(13)).toEqual([]);
  expect(await noted(14)).toEqual(all.slice(0, 1));
  expect(await noted(126)).toEqual(all);
});

it("what is left out is said whatever the limit: it would have been counted", async () => {
  const data = dataChoiceSchema.parse({ subset: "algorithm-generated", clean: true });
  const { items, problems } = await dataLoader()({ data, limit: 3 });
  expect(items).toHaveLength(3);
  expect(problems.map(({ dropped }) => dropped)).not.toContain(false);
  // Three labels that are not the speaker's, and two histories that occur twice.
  expect(problems).toHaveLength(7);
});
