import fc from "fast-check";

/** Runs a property under a seed that is printed; ROOTSTEP_TEST_SEED repeats a run. */
export async function checkSeeded<T>(
  name: string,
  property: fc.IAsyncProperty<T> | fc.IProperty<T>,
  numRuns: number,
): Promise<void> {
  const seed = Number(process.env.ROOTSTEP_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));
  console.info(`${name}: ROOTSTEP_TEST_SEED=${seed}`);
  await fc.assert(property, { seed, numRuns });
}
