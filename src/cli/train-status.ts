import { basename, resolve } from "node:path";
import type { Evaluation, Metric, SftMetric } from "../../trainer/metrics.ts";
import type { CourseEvent, TrainingState } from "../../trainer/training-course.ts";
import { followTraining } from "../../trainer/training-feed.ts";
import type { TrainingFeedEvent } from "../../trainer/training-feed-contract.ts";
import { readTrainingStatus, type TrainingStatus } from "../../trainer/training-status.ts";
import { EXIT } from "../errors.ts";
import type { Series } from "../report/line-plot.ts";
import { textTable } from "../report/table.ts";
import { type TrainingSection, trainingHtml } from "../report/training-report.ts";
import { writeAtomically } from "../runs/run-folder.ts";
import { optionalString, plainCommand, stringArgument } from "./command.ts";

/** Steps that the table shows. */
const SHOWN_STEPS = 8;

/** `train status`: how far a training run is, its metrics and its checkpoints; plots as an HTML file. */
export const trainStatus = plainCommand({
  name: "train status",
  describe:
    "how far a training run is: metrics of the last steps, evaluations, checkpoints; plots with --html, live with --watch",
  arguments: [
    {
      name: "folder",
      describe: "run folder of train run or train sft",
      type: "string",
      positional: true,
      required: true,
    },
    {
      name: "watch",
      describe: "print what comes until the run ends or Ctrl-C; with --json a line of JSON for each event",
      type: "boolean",
    },
    { name: "html", describe: "write the course of the run as an HTML file with plots", type: "string" },
  ],
  examples: [
    "train status runs/tracer",
    "train status runs/tracer --html tracer.html",
    "train status runs/tracer --watch",
  ],
  async run(_, args, context) {
    const folder = stringArgument(args, "folder");
    if (args.watch === true) {
      for await (const message of followTraining(folder, { signal: context.signal })) {
        const text = renderEvent(message.event);
        if (context.json || text !== undefined) context.printLine(message, text ?? "");
      }
      return EXIT.ok;
    }
    const status = await readTrainingStatus(folder);
    const html = optionalString(args, "html");
    if (html !== undefined) writeAtomically(html, renderHtml(basename(resolve(folder)), status));
    const text = [renderStatus(status), ...(html === undefined ? [] : [`plots in ${html}`])].join("\n");
    context.print(status, text);
    return EXIT.ok;
  },
});

const percent = (share: number): string => `${(100 * share).toFixed(1)}%`;

function renderStatus(status: TrainingStatus): string {
  const { kind, steps, stepsDone, startedAt, metrics, sftMetrics, evaluations, timings, checkpoints } = status;
  const head = `${kind} run, ${renderState(status.state)}, ${stepsDone} of ${steps} steps done, started ${startedAt}${pace(status)}`;
  const recent =
    kind === "grpo"
      ? textTable(
          "Last steps",
          [
            "step",
            "reward",
            "format",
            "exact step",
            "agent",
            "dead",
            "cut",
            "length",
            "entropy",
            "stale",
            "ratio std",
            "clip",
            "clipped",
            "grad norm",
          ],
          metrics.slice(-SHOWN_STEPS).map(metricRow),
        )
      : textTable(
          "Last steps",
          ["step", "loss per token", "grad norm"],
          sftMetrics
            .slice(-SHOWN_STEPS)
            .map(({ step, tokenLoss, gradNorm }) => [String(step), tokenLoss.toFixed(4), gradNorm.toPrecision(3)]),
        );
  const held = textTable(
    "Held out, greedy",
    ["after steps", "n", "step right", "agent right", "format", "reward"],
    evaluations.map((one) => [String(one.stepsDone), String(one.n), ...evaluationShares(one)]),
  );
  const saved = textTable(
    "Checkpoints",
    ["name", "why", "state"],
    checkpoints.map(({ name, reason, intact }) => [name, reason ?? "?", intact ? "intact" : "DAMAGED"]),
  );
  const warnings = metrics.at(-1)?.warnings ?? [];
  return [
    head,
    recent,
    ...(evaluations.length === 0 ? [] : [held]),
    ...(checkpoints.length === 0 ? [] : [saved]),
    ...warnings.map((line) => `warning of the last step: ${line}`),
    ...(timings.length === 0 ? [] : [`sampling took ${percent(samplingShare(status))} of the time`]),
  ].join("\n");
}

function metricRow(metric: Metric): string[] {
  const { step, reward, deadGroups, groups, truncated, entropy, ratio, clipFraction, gradNorm } = metric;
  return [
    String(step),
    reward.mean.toFixed(3),
    percent(reward.format),
    percent(reward.exactStep),
    percent(reward.agent),
    `${deadGroups} of ${groups}`,
    String(truncated),
    metric.lengths === null ? "–" : metric.lengths.mean.toFixed(1),
    entropy.toFixed(3),
    String(metric.staleness.steps),
    ratio === null ? "–" : ratio.std.toExponential(1),
    metric.clip.toFixed(3),
    clipFraction === null ? "–" : percent(clipFraction),
    gradNorm === null ? "–" : gradNorm.toPrecision(3),
  ];
}

function renderState({ state, reason }: TrainingState): string {
  return reason === null ? state : `${state} (${reason})`;
}

/** A line for a person; undefined for what only programs read. */
function renderEvent(event: TrainingFeedEvent): string | undefined {
  switch (event.kind) {
    case "run":
      return `${event.run.kind} run of ${event.run.steps} steps, started ${event.run.startedAt}`;
    case "metric":
      return renderMetric(event.metric);
    case "evaluation": {
      const { stepsDone, n } = event.evaluation;
      const [step, agent, format, reward] = evaluationShares(event.evaluation);
      return `held out after ${stepsDone} steps: step ${step}, agent ${agent}, format ${format}, reward ${reward} (n=${n})`;
    }
    case "timing":
      return undefined;
    case "rewound":
      return `resumed: ${event.of} records after the first ${event.kept} are made again`;
    case "course":
      return renderCourse(event.course);
    case "state":
      return renderState(event);
  }
}

function renderMetric(metric: Metric | SftMetric): string {
  if (!("reward" in metric)) return `step ${metric.step}: loss per token ${metric.tokenLoss.toFixed(4)}`;
  const { step, reward, clip, clipFraction, entropy, deadGroups, groups, lengths, staleness } = metric;
  return [
    `step ${step}: reward ${reward.mean.toFixed(3)}`,
    `format ${percent(reward.format)}, step ${percent(reward.exactStep)}, agent ${percent(reward.agent)}`,
    `clip ${clip.toFixed(3)} (${clipFraction === null ? "no update" : `${percent(clipFraction)} of tokens`})`,
    `entropy ${entropy.toFixed(3)}`,
    `dead ${deadGroups} of ${groups}`,
    ...(lengths === null ? [] : [`length ${lengths.mean.toFixed(1)}`]),
    ...(staleness.steps === 0 ? [] : [`${staleness.steps} steps stale`]),
    ...metric.warnings.map((warning) => `warning: ${warning}`),
  ].join("; ");
}

/** What is not said by a change of the run's state. */
function renderCourse(course: CourseEvent): string | undefined {
  switch (course.kind) {
    case "checkpoint":
      return `checkpoint after ${course.stepsDone} steps (${course.reason})`;
    case "ratio-check":
      return `ratio at unchanged weights: mean ${course.stats.mean.toFixed(6)}, spread ${course.stats.std.toExponential(1)}`;
    case "ratio-check-skipped":
      return "the first batch was sampled ahead: sampler and engine are not compared on it";
    case "corrupt-checkpoint":
      return `a damaged checkpoint was passed over: ${course.what}`;
    case "started":
      return course.stepsDone === 0 ? undefined : `goes on after ${course.stepsDone} steps`;
    case "finished":
    case "stopped":
    case "failed":
      return undefined;
  }
}

function evaluationShares({
  stepAccuracy,
  agentAccuracy,
  format,
  meanReward,
}: Evaluation): [string, string, string, string] {
  return [percent(stepAccuracy), percent(agentAccuracy), percent(format), meanReward.toFixed(3)];
}

function pace({ timings, steps, stepsDone }: TrainingStatus): string {
  if (timings.length === 0) return "";
  const seconds = timings.reduce((sum, { totalMs }) => sum + totalMs, 0) / timings.length / 1000;
  const left = stepsDone < steps ? `, about ${Math.ceil((seconds * (steps - stepsDone)) / 60)} min of steps left` : "";
  return `, ${seconds.toFixed(1)} s a step${left}`;
}

function samplingShare({ timings }: TrainingStatus): number {
  const sum = (pick: (timing: TrainingStatus["timings"][number]) => number): number =>
    timings.reduce((total, timing) => total + pick(timing), 0);
  return (
    sum(({ sampleMs }) => sampleMs) /
    Math.max(
      1,
      sum(({ totalMs }) => totalMs),
    )
  );
}

function renderHtml(name: string, status: TrainingStatus): string {
  const { metrics, sftMetrics, evaluations } = status;
  const over = (title: string, pick: (metric: Metric) => number | null): Series => ({
    name: title,
    points: metrics.map((metric) => ({ x: metric.step, y: pick(metric) })),
  });
  const plot = (title: string, ...series: Series[]) => ({ title, series });
  const held = (title: string, pick: (evaluation: Evaluation) => number): Series => ({
    name: title,
    points: evaluations.map((one) => ({ x: one.stepsDone, y: pick(one) })),
  });
  const grpo: TrainingSection[] = [
    {
      name: "Rewards of the rollouts",
      plots: [
        plot(
          "Mean reward",
          over("reward", ({ reward }) => reward.mean),
        ),
        plot(
          "Parts of the reward",
          over("format", ({ reward }) => reward.format),
          over("step", ({ reward }) => reward.step),
          over("agent", ({ reward }) => reward.agent),
        ),
        plot(
          "Groups without variance",
          over("dead", ({ deadGroups, groups }) => deadGroups / Math.max(1, groups)),
        ),
      ],
    },
    {
      name: "Policy",
      plots: [
        plot(
          "Entropy, nats per token",
          over("entropy", ({ entropy }) => entropy),
        ),
        plot(
          "Spread of the ratio",
          over("std", ({ ratio }) => ratio?.std ?? null),
        ),
        plot(
          "Clipped tokens",
          over("clipped", ({ clipFraction }) => clipFraction),
        ),
        plot(
          "Clip bound",
          over("B", ({ clip }) => clip),
        ),
        plot(
          "Gradient norm",
          over("norm", ({ gradNorm }) => gradNorm),
        ),
        plot(
          "Engine over sampler at unchanged weights",
          over("mean ratio", ({ samplerRatio }) => samplerRatio?.mean ?? null),
        ),
      ],
    },
    {
      name: "Held out, greedy",
      plots: [
        plot(
          "Accuracy",
          held("step", ({ stepAccuracy }) => stepAccuracy),
          held("agent", ({ agentAccuracy }) => agentAccuracy),
        ),
        plot(
          "Mean reward",
          held("reward", ({ meanReward }) => meanReward),
        ),
      ],
    },
  ];
  const sft: TrainingSection[] = [
    {
      name: "Cross-entropy",
      plots: [
        {
          title: "Loss per token, nats",
          series: [{ name: "loss", points: sftMetrics.map(({ step, tokenLoss }) => ({ x: step, y: tokenLoss })) }],
        },
      ],
    },
  ];
  const facts = [
    `${status.stepsDone} of ${status.steps} steps done`,
    `started ${status.startedAt}`,
    `${status.checkpoints.length} checkpoints`,
  ];
  return trainingHtml(`Training run ${name}`, facts, status.kind === "grpo" ? grpo : sft);
}
