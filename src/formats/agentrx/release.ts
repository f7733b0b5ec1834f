import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { onFile } from "../files.ts";

/** One half of the AgentRx release: where its labels and its runs lie below the release's `data` folder. */
export interface AgentRxDomain {
  /** First part of trajectory ids. */
  readonly slug: "magentic-one" | "tau-retail";
  readonly labels: string;
  /** A folder with one file per run, or one file with all of them. */
  readonly runs: { readonly folder: string } | { readonly file: string };
  readonly system: string;
  /** Column of a table. */
  readonly subset: string;
}

/** The domains that are public, in reading order; the third one of the paper (Flash) was never released. */
export const AGENTRX_DOMAINS: readonly AgentRxDomain[] = [
  {
    slug: "magentic-one",
    labels: join("ground_truth", "magentic_one_ground_truth.json"),
    runs: { folder: "magentic_dataset" },
    system: "magentic-one",
    subset: "AgentRx Magentic-One",
  },
  {
    slug: "tau-retail",
    labels: join("ground_truth", "tau_ground_truth.json"),
    runs: { file: join("tau_retail", "tau_dataset_failed.json") },
    system: "tau-bench",
    subset: "AgentRx tau-retail",
  },
];

/** The domains whose labels lie below a folder. @throws RootstepError FILE_MISSING, FILE_UNREADABLE */
export async function domainsIn(source: string): Promise<AgentRxDomain[]> {
  if (!(await onFile(source, () => stat(source))).isDirectory()) return [];
  const names = await onFile(source, () => readdir(source));
  if (!names.includes("ground_truth")) return [];
  const inside = await onFile(join(source, "ground_truth"), () => readdir(join(source, "ground_truth")));
  return AGENTRX_DOMAINS.filter(({ labels }) => inside.includes(labels.slice("ground_truth".length + 1)));
}
