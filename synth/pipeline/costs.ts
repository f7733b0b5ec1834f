import { join } from "node:path";
import Database from "better-sqlite3";
import { z } from "zod";
import { type Cost, money } from "../ledger/cost.ts";
import { LEDGER_FILE } from "../ledger/open.ts";
import { ledgerError } from "../ledger/sqlite-error.ts";

const rowSchema = z.object({
  stage: z.string(),
  key: z.string(),
  calls: z.number().nullable(),
  promptTokens: z.number().nullable(),
  completionTokens: z.number().nullable(),
  nanos: z.number().nullable(),
});
/** What one finished unit has cost; null throughout where it was taken over from a journal. */
export type UnitCost = z.infer<typeof rowSchema>;

/** The costs of all finished units of a run folder. @throws RootstepError RUN_CORRUPT */
export function readUnitCosts(path: string): UnitCost[] {
  const file = join(path, LEDGER_FILE);
  let database: Database.Database | undefined;
  try {
    database = new Database(file, { readonly: true, timeout: 5000 });
    const rows = database.prepare(
      "SELECT stage, key, calls, prompt_tokens AS promptTokens, completion_tokens AS completionTokens, nanos FROM units WHERE state = 'done' ORDER BY stage, position",
    );
    return z.array(rowSchema).parse(rows.all());
  } catch (thrown) {
    throw ledgerError(thrown, file);
  } finally {
    database?.close();
  }
}

export interface CostSum extends Omit<Cost, "nanos"> {
  /** In the currency of the prices; null where a price or usage is not known. */
  readonly money: number | null;
}

export interface CostReport {
  /** record, inject, and each strategy's searches as `search STRATEGY`. */
  readonly parts: Readonly<Record<string, CostSum>>;
  /** Units whose cost is not known: they are not in the sums. */
  readonly unknown: number;
  /** Recording, injection and the searches of the strategy that labels, by the labels of the dataset; null without any. */
  readonly perLabel: CostSum | null;
}

/**
 * @param labelling the strategy whose labels enter the dataset
 * @param labels of the dataset
 */
export function costReport(
  costs: readonly UnitCost[],
  strategies: readonly string[],
  labelling: string | undefined,
  labels: number,
): CostReport {
  const of = (stage: string, isOf: (key: string) => boolean = () => true): UnitCost[] =>
    costs.filter((cost) => cost.stage === stage && isOf(cost.key));
  const searches = (strategy: string): UnitCost[] => of("search", (key) => key.endsWith(` ${strategy}`));
  const [record, inject] = [of("record"), of("inject")];
  const paid = [...record, ...(labelling === undefined ? [] : searches(labelling)), ...inject];
  return {
    parts: {
      record: summed(record),
      ...Object.fromEntries(strategies.map((strategy) => [`search ${strategy}`, summed(searches(strategy))])),
      inject: summed(inject),
    },
    unknown: costs.filter(({ calls }) => calls === null).length,
    perLabel: labels === 0 ? null : divided(summed(paid), labels),
  };
}

function summed(costs: readonly UnitCost[]): CostSum {
  const sum = (of: (cost: UnitCost) => number | null): number =>
    costs.reduce((total, cost) => total + (of(cost) ?? 0), 0);
  const known = {
    calls: sum(({ calls }) => calls),
    promptTokens: sum(({ promptTokens }) => promptTokens),
    completionTokens: sum(({ completionTokens }) => completionTokens),
  };
  const nanos = costs.some((cost) => cost.nanos === null) ? null : sum((cost) => cost.nanos);
  return { ...known, money: money({ ...known, nanos }) };
}

function divided(cost: CostSum, by: number): CostSum {
  return {
    calls: cost.calls / by,
    promptTokens: cost.promptTokens / by,
    completionTokens: cost.completionTokens / by,
    money: cost.money === null ? null : cost.money / by,
  };
}
