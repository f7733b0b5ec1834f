import { wilsonInterval } from "../../src/evaluation/statistics.ts";
import type { Trajectory } from "../../src/trajectory/schema.ts";
import type { PipelineInput, PipelineRecords } from "../pipeline/pipeline.ts";
import { counted, labelsByOperator } from "../pipeline/report.ts";
import { cardHeader, RUN_FILES } from "./card-header.ts";
import { type Dataset, levelsOfStrategy, SPLITS, type Split } from "./dataset.ts";
import { UNLABELLED_FILE } from "./unlabelled-file.ts";

/** README.md of a dataset: what is in it, where it comes from, how it was labelled, what it is not good for. */
export function datasetCard(input: PipelineInput, records: PipelineRecords, dataset: Dataset): string {
  const { config, taskSet, system, model } = input;
  const simulated = input.simulator !== undefined;
  const all = SPLITS.flatMap((split) => dataset.splits[split]);
  const { operator } = config.inject;
  const header = cardHeader({
    prettyName: `TracerTraj: ${system.id} on ${taskSet.id}`,
    licence: taskSet.licence,
    records: all.length,
    tags: ["failure-attribution", "multi-agent", "tracertraj", "rootstep", ...(simulated ? ["simulated"] : [])],
    files: RUN_FILES,
  });
  return `${header}# TracerTraj records made by rootstep

${simulated ? "**Simulated.** The agents were played by rootstep's fallible simulator, not by a language model. Do not mix these records into real data unmarked.\n\n" : ""}Failed runs of a multi-agent system with the decisive (agent, step): the earliest step whose correction makes the run succeed.

- system: ${system.id}: ${system.title} (step policy ${system.stepPolicy}; agents ${system.agents.join(", ")})
- agents played by: ${model.id}; corrections by: ${input.analyzer.id}
- seed: ${config.seed}

## Counts

${table(
  ["split", "trajectories", "task groups", "counterfactual", "injection"],
  SPLITS.map((split) => splitRow(split, dataset.splits[split])),
)}

No task group stands in both splits.

${table(["system", "task set", "source of the label", "verdict", "runs", "train", "test"], verdictRows(input, records, dataset))}

## Files

\`train\` and \`test\` as Parquet (what \`load_dataset\` of Hugging Face loads) and as JSON Lines (for \`load_dataset("json", data_files=…)\`), with the same records. In Parquet the fields of no fixed shape (\`extra\`, \`provenance.seed\`) are JSON text. \`evidence.jsonl\` has, for every label and for every run that got none, what the reruns said; a label's \`evidenceRef\` is the \`id\` there.
${unlabelledLine(dataset)}
## How the labels were made

- counterfactual: strategy \`${config.search.strategies[0]}\`, α = ${config.search.alpha}, smallest effect ${config.search.minEffect}, at most ${config.search.maxBlocks} blocks a step${config.search.fdr === undefined ? "" : `, false discovery rate ${config.search.fdr} (e-BH)`}
- injection: ${operator === "none" ? "none" : `operator \`${operator}\`, against a placebo at the same step, in runs that succeed again with a lower 95% bound of ${config.inject.minControlSuccess}${operatorCounts(records)}`}
${evidenceLines(input, records, dataset).join("\n")}

## Known limits

- One system and one task set: figures on these records say little about other systems.
- A label is the earliest step whose correction *by this analyzer* changes the outcome; a step it cannot correct is not found.
- At each step the test may claim an effect that is not there with probability α.
- Runs without a confirmed label are left out, so easy failures are over-represented (see coverage).
- Injected faults are made by rule or by a model on request; compare them with natural ones: \`rootstep data stats --compare\`.

## Sources and licences

- tasks: ${taskSet.title}; ${taskSet.source}; licence ${taskSet.licence}. The task texts, references and what agents quote of them stay under it.
- runs and labels: made with rootstep (MIT). What a model wrote may be bound by the terms of ${simulated ? "no model: the simulator is part of rootstep" : model.id}.
`;
}

/** A point of `evidence.jsonl` names the operator that made it. */
function operatorCounts({ injections }: PipelineRecords): string {
  const counts = Object.entries(labelsByOperator(injections)).map(([name, { hits, n }]) => `${name} ${hits} of ${n}`);
  return counts.length === 0 ? "" : `; labels by operator, of the points tried: ${counts.join(", ")}`;
}

function unlabelledLine({ unlabelled }: Dataset): string {
  if (unlabelled.length === 0) return "";
  const counts = Object.entries(counted(unlabelled.map(({ why }) => why))).map(([why, runs]) => `${runs} ${why}`);
  return `
Failed runs without a label: ${unlabelled.length} (${counts.join(", ")}). They are in no split; \`synth run\` leaves them beside this folder as \`${UNLABELLED_FILE}\`.
`;
}

function splitRow(name: Split, trajectories: readonly Trajectory[]): string[] {
  const from = (source: string): string =>
    String(trajectories.filter(({ labels }) => labels[0]?.source === source).length);
  const groups = new Set(trajectories.map(({ task }) => task.groupId)).size;
  return [name, String(trajectories.length), String(groups), from("counterfactual"), from("injection")];
}

/** How every searched and injected run ended, and where it stands. */
function verdictRows(
  { config, system, taskSet }: PipelineInput,
  records: PipelineRecords,
  { splits }: Dataset,
): string[][] {
  const searches = records.searches.filter(({ strategy }) => strategy === config.search.strategies[0]);
  const placed = (split: Split, source: string, verdict: string | undefined): string =>
    String(splits[split].filter(({ labels: [label] }) => label?.source === source && label.verdict === verdict).length);
  const verdicts = [...new Set(searches.map(({ verdict }) => verdict))].sort();
  const injected = records.injections.filter(({ trajectory }) => trajectory !== undefined).length;
  const row = (source: string, name: string, runs: number, places: readonly string[]): string[] => [
    system.id,
    taskSet.id,
    source,
    name,
    String(runs),
    ...places,
  ];
  const nowhere = ["0", "0"];
  return [
    ...verdicts.map((verdict) =>
      row(
        "counterfactual",
        verdict,
        searches.filter((search) => search.verdict === verdict).length,
        SPLITS.map((split) => placed(split, "counterfactual", verdict)),
      ),
    ),
    ...(config.inject.operator === "none"
      ? []
      : [
          row(
            "injection",
            "decisive",
            injected,
            SPLITS.map((split) => placed(split, "injection", undefined)),
          ),
          row("injection", "no decisive point, or not reliable enough", records.injections.length - injected, nowhere),
        ]),
  ];
}

function evidenceLines({ config }: PipelineInput, records: PipelineRecords, { splits }: Dataset): string[] {
  const [labelling] = config.search.strategies;
  const searches = records.searches.filter(({ strategy }) => strategy === labelling);
  const labels = SPLITS.flatMap((split) => splits[split]).filter(
    ({ labels: [one] }) => one?.source === "counterfactual",
  );
  const levels = levelsOfStrategy(records, labelling);
  const eValues = labels.map(({ id }) => levels.get(id)?.eValue ?? 0).filter((value) => value > 0);
  const searchCalls = total(searches);
  const injectCalls = total(records.injections);
  const injected = records.injections.filter(({ trajectory }) => trajectory !== undefined).length;
  return [
    `- live calls: ${searchCalls} in searches${per(searchCalls, labels.length)}, ${injectCalls} in injections${per(injectCalls, injected)}`,
    `- e-values of the counterfactual labels, each staked over the steps that were examined: ${spread(eValues)}`,
    `- coverage: ${coverage(labels.length, searches.length)}`,
  ];
}

const total = (parts: readonly { readonly liveCalls: number }[]): number =>
  parts.reduce((sum, { liveCalls }) => sum + liveCalls, 0);

const per = (calls: number, labels: number): string =>
  labels === 0 ? " (no label)" : ` (${(calls / labels).toFixed(0)} a label)`;

function spread(values: readonly number[]): string {
  if (values.length === 0) return "none (no label, or a strategy without a test)";
  const sorted = [...values].sort((a, b) => a - b);
  const median = ((sorted[(sorted.length - 1) >> 1] ?? 0) + (sorted[sorted.length >> 1] ?? 0)) / 2;
  return `least ${(sorted[0] ?? 0).toPrecision(3)}, median ${median.toPrecision(3)} (n = ${sorted.length})`;
}

function coverage(labelled: number, failed: number): string {
  if (failed === 0) return "no failed run";
  const { low, high } = wilsonInterval(labelled, failed);
  const percent = (share: number): string => (100 * share).toFixed(1);
  return `${labelled} of ${failed} failed runs got a label, ${percent(labelled / failed)}% [${percent(low)}, ${percent(high)}]`;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  return [line(head), `|${head.map(() => "---").join("|")}|`, ...rows.map(line)].join("\n");
}
