import type { Trajectory } from "../../src/trajectory/schema.ts";
import type { PipelineInput } from "../pipeline/pipeline.ts";
import type { Dataset } from "./dataset.ts";

/** README.md of a dataset: what is in it, where it comes from, how it was labelled, what it is not good for. */
export function datasetCard(input: PipelineInput, dataset: Dataset): string {
  const { config, taskSet, system, model } = input;
  const simulated = input.simulator !== undefined;
  const count = (trajectories: readonly Trajectory[], source: string): number =>
    trajectories.filter(({ labels }) => labels[0]?.source === source).length;
  const row = (name: "train" | "test"): string => {
    const trajectories = dataset.splits[name];
    const groups = new Set(trajectories.map(({ task }) => task.groupId)).size;
    return `| ${name} | ${trajectories.length} | ${groups} | ${count(trajectories, "counterfactual")} | ${count(trajectories, "injection")} |`;
  };
  return `---
license: mit
configs:
  - config_name: default
    data_files:
      - { split: train, path: train.jsonl }
      - { split: test, path: test.jsonl }
---
# TracerTraj records made by rootstep

${simulated ? "**Simulated.** The agents were played by rootstep's fallible simulator, not by a language model. Do not mix these records into real data unmarked.\n\n" : ""}Failed runs of a multi-agent system with the decisive (agent, step).

- system: ${system.id} (step policy ${system.stepPolicy})
- tasks: ${taskSet.title}; ${taskSet.source}; licence ${taskSet.licence}
- agents played by: ${model.id}
- labels: \`counterfactual\` by strategy \`${config.search.strategies[0]}\` (α = ${config.search.alpha}, smallest effect ${config.search.minEffect}); \`injection\` by operator \`${config.inject.operator}\` with placebo
- seed: ${config.seed}

| split | trajectories | task groups | counterfactual | injection |
|---|---|---|---|---|
${row("train")}
${row("test")}

No task group stands in both splits. \`evidence.jsonl\` has, for every label and every run that got none, what the reruns said.

Known limits: one system and one task set; a label is the earliest step whose correction *by this analyzer* changes the outcome; at each step the test may err with probability α.
`;
}
