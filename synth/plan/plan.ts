import type { Estimate } from "../../src/evaluation/plan.ts";
import { wilsonInterval } from "../../src/evaluation/statistics.ts";
import type { Prices } from "../../src/models/budget.ts";
import type { AgentModelConfig, SynthConfig } from "../pipeline/config.ts";
import { defaultSandbox, remembered } from "../sandbox/remembered.ts";
import { inSandbox } from "../sandbox/sandbox.ts";
import { unconfined } from "../sandbox/unconfined.ts";
import { searchStrategies } from "../search/registry.ts";
import { systemById } from "../systems/registry.ts";
import { taskSetById } from "../tasks/registry.ts";
import { type RegimeProfile, regimeProfiles } from "./profile.ts";
import { analyzerCall, assumedShape, type CallSize, estimate, type RunShape, sampleShapes } from "./shape.ts";
import { runsToSimulate, type SimulatedUnit, simulateInjection, simulateSearch } from "./simulate.ts";

export interface PlanOptions {
  /** Milliseconds of one call of a model server. */
  readonly latencyMs: number;
  /** Share of the runs that fail; default: as the simulator does, or 20% to 80% for a model server. */
  readonly failureShare?: number | undefined;
  /** Steps of a run, where the simulator cannot play the system. */
  readonly steps?: number | undefined;
}

/** What one part of a run takes. */
export interface PlannedPart {
  readonly part: string;
  /** False for a strategy that the configuration does not name: shown to compare. */
  readonly configured: boolean;
  /** Runs it works on. */
  readonly units: Estimate;
  readonly calls: Estimate;
  readonly promptTokens: Estimate;
  readonly completionTokens: Estimate;
  /** In the currency of the prices; null where a price is missing. */
  readonly money: Estimate | null;
  /** Null where the simulator answers: no server is waited for. */
  readonly seconds: Estimate | null;
  readonly labels: Estimate | null;
  readonly callsPerLabel: Estimate | null;
}

export interface SynthPlan {
  readonly tasks: number;
  readonly runs: number;
  /** Of the runs played to see what the prompts hold. */
  readonly sample: { readonly runs: number; readonly steps: { readonly least: number; readonly most: number } };
  readonly failureShare: Estimate;
  readonly simulatedRunsPerStrategy: number;
  readonly parts: readonly PlannedPart[];
  /** Of the configured parts. */
  readonly total: Omit<PlannedPart, "part" | "configured" | "units" | "labels" | "callsPerLabel">;
  readonly caps: {
    readonly maxCalls: number | null;
    readonly maxCost: number | null;
    readonly maxLiveCallsPerRun: number | null;
  };
  readonly basis: readonly string[];
}

const UNKNOWN_FAILURE: Estimate = { low: 0.2, expected: 0.5, high: 0.8 };

/**
 * What `synth run` would take, by playing a sample on the simulator and running each strategy on made-up failed runs.
 * Low and high: the cheaper and the dearer regime, two standard errors out, with the share of failed runs at its ends. Seeded; nothing is asked of a
 * model server.
 *
 * @throws RootstepError UNKNOWN_NAME, DATA_NOT_SHIPPED, SANDBOX_…, SIMULATOR_CONFUSED (then `steps` helps)
 */
export async function planSynth(config: SynthConfig, options: PlanOptions): Promise<SynthPlan> {
  const sandbox = config.unsafeNoSandbox ? remembered(unconfined) : defaultSandbox;
  const taskSet = inSandbox(taskSetById(config.tasks.set), sandbox);
  const system = inSandbox(systemById(config.system), sandbox);
  const { limit, path } = config.tasks;
  const tasks = await taskSet.load({ seed: config.seed, limit, ...(path === undefined ? {} : { path }) });
  const { model } = config;
  const { steps } = options;
  const maxTokens = model.provider === "simulator" ? undefined : model.maxTokens;
  const shapes =
    steps === undefined
      ? await sampleShapes({ system, taskSet, tasks }, model, config.seed)
      : tasks.slice(0, 1).map((task) => assumedShape(task, steps, maxTokens));
  const lengths = shapes.map((shape) => shape.steps.length);
  const failureShare = failures(shapes, config, options);
  const runs = tasks.length * config.tasks.runs;
  const failed = estimate((end) => runs * failureShare[end]);
  const passed = estimate((end) => runs * (1 - failureShare[end === "low" ? "high" : end === "high" ? "low" : end]));
  const profiles = profilesOf(model);
  const mean = lengths.reduce((sum, length) => sum + length, 0) / Math.max(1, lengths.length);
  const made = runsToSimulate(mean);
  const cycled = Array.from({ length: made }, (_, at) => lengths[at % lengths.length] ?? 1);

  const price = pricer(config, shapes, options);
  const once = [shapes.map((shape) => ({ agents: shape.steps.map(() => 1), analyzer: [], labelled: false }))];
  const parts: PlannedPart[] = [
    price(
      "record",
      true,
      estimate(() => runs),
      once,
    ),
  ];
  for (const strategy of searchStrategies) {
    const regimes: SimulatedUnit[][] = [];
    for (const profile of profiles) regimes.push(await simulateSearch(strategy, profile, cycled, config));
    parts.push(price(`search: ${strategy.id}`, config.search.strategies.includes(strategy.id), failed, regimes));
  }
  if (config.inject.operator !== "none") {
    const regimes = profiles.map((profile) =>
      cycled.map((length, number) => simulateInjection(profile, length, config, number)),
    );
    parts.push(price(`inject: ${config.inject.operator}`, true, passed, regimes));
  }
  return {
    tasks: tasks.length,
    runs,
    sample: { runs: shapes.length, steps: { least: Math.min(...lengths), most: Math.max(...lengths) } },
    failureShare,
    simulatedRunsPerStrategy: made,
    parts,
    total: totalOf(parts.filter(({ configured }) => configured)),
    caps: {
      maxCalls: config.maxCalls ?? null,
      maxCost: config.maxCost ?? null,
      maxLiveCallsPerRun: config.search.maxLiveCalls ?? null,
    },
    basis: basisOf(config, profiles, made, options),
  };
}

function profilesOf(model: AgentModelConfig): RegimeProfile[] {
  if (model.provider === "simulator") return [regimeProfiles(model.noise)[model.regime]];
  const both = regimeProfiles(0.1);
  return [both.slip, both.systematic];
}

function failures(shapes: readonly RunShape[], { model }: SynthConfig, { failureShare, steps }: PlanOptions): Estimate {
  if (failureShare !== undefined) return estimate(() => failureShare);
  if (model.provider !== "simulator" || steps !== undefined || shapes.length === 0) return UNKNOWN_FAILURE;
  const hits = shapes.filter(({ failed }) => failed).length;
  const { low, high } = wilsonInterval(hits, shapes.length);
  return { low, expected: hits / shapes.length, high };
}

/** Puts sizes, prices and time to simulated units: `regimes` has the units of each regime. */
function pricer(config: SynthConfig, shapes: readonly RunShape[], { latencyMs }: PlanOptions) {
  const { model } = config;
  const analyzer = config.analyzer ?? model;
  const sizes: CallSize[] = [];
  const sizeAt = (step: number): CallSize => (sizes[step] ??= shapeAt(shapes, step));
  return (
    part: string,
    configured: boolean,
    units: Estimate,
    regimes: readonly (readonly SimulatedUnit[])[],
  ): PlannedPart => {
    const perUnit = (of: (unit: SimulatedUnit, end: keyof Estimate) => number): Estimate => {
      const ends = regimes.map((all) =>
        estimate((end) =>
          meanWithin(
            all.map((unit) => of(unit, end)),
            end,
          ),
        ),
      );
      return {
        low: Math.min(...ends.map(({ low }) => low)),
        expected: ends.reduce((sum, { expected }) => sum + expected, 0) / Math.max(1, ends.length),
        high: Math.max(...ends.map(({ high }) => high)),
      };
    };
    const inAll = (each: Estimate): Estimate => estimate((end) => units[end] * each[end]);
    const over = (counts: readonly number[], of: (step: number) => number): number =>
      counts.reduce((sum, count, step) => sum + (count === 0 ? 0 : count * of(step)), 0);
    const summed = (kind: "prompt" | "completion") => ({
      agents: perUnit(({ agents }, end) => over(agents, (step) => sizeAt(step)[kind][end])),
      analyzer: perUnit(({ analyzer: asked }, end) => over(asked, (step) => analyzerCall(sizeAt(step))[kind][end])),
    });
    const [prompt, completion] = [summed("prompt"), summed("completion")];
    const both = (of: typeof prompt): Estimate => inAll(estimate((end) => of.agents[end] + of.analyzer[end]));
    const moneyOf = (prices: Prices | undefined, who: "agents" | "analyzer"): Estimate | null => {
      if (
        over(
          regimes.flat().flatMap((unit) => unit[who]),
          () => 1,
        ) === 0
      )
        return estimate(() => 0);
      if (prices === undefined) return null;
      return estimate((end) => (prompt[who][end] * prices.prompt + completion[who][end] * prices.completion) / 1e6);
    };
    const [agentsMoney, analyzerMoney] = [moneyOf(pricesOf(model), "agents"), moneyOf(pricesOf(analyzer), "analyzer")];
    const calls = inAll(perUnit(({ agents, analyzer: asked }) => over(agents, () => 1) + over(asked, () => 1)));
    const labelled = perUnit((unit) => Number(unit.labelled));
    const share = estimate((end) => Math.min(1, labelled[end]));
    const labelling = part !== "record";
    return {
      part,
      configured,
      units,
      calls,
      promptTokens: both(prompt),
      completionTokens: both(completion),
      money:
        agentsMoney === null || analyzerMoney === null
          ? null
          : inAll(estimate((end) => agentsMoney[end] + analyzerMoney[end])),
      seconds: secondsOf(calls, config, latencyMs),
      labels: labelling ? inAll(share) : null,
      callsPerLabel: labelling ? callsPerLabel(regimes) : null,
    };
  };
}

/** The cheaper regime, both, the dearer; null where no made-up run of some regime got a label. */
function callsPerLabel(regimes: readonly (readonly SimulatedUnit[])[]): Estimate | null {
  const total = (units: readonly SimulatedUnit[]): number =>
    units.reduce((sum, { agents, analyzer }) => sum + [...agents, ...analyzer].reduce((a, b) => a + b, 0), 0);
  const labels = (units: readonly SimulatedUnit[]): number => units.filter(({ labelled }) => labelled).length;
  if (regimes.some((units) => labels(units) === 0)) return null;
  const each = regimes.map((units) => total(units) / labels(units));
  const all = regimes.flat();
  return { low: Math.min(...each), expected: total(all) / labels(all), high: Math.max(...each) };
}

/** The mean; at the ends less or plus two standard errors, for the made-up runs are few. */
function meanWithin(values: readonly number[], end: keyof Estimate): number {
  const n = Math.max(1, values.length);
  const mean = values.reduce((sum, value) => sum + value, 0) / n;
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  const error = Math.sqrt(squares / Math.max(1, n - 1) / n);
  return end === "expected" ? mean : end === "low" ? Math.max(0, mean - 2 * error) : mean + 2 * error;
}

const pricesOf = (model: AgentModelConfig): Prices | undefined =>
  model.provider === "simulator" ? { prompt: 0, completion: 0 } : model.prices;

function secondsOf(calls: Estimate, { model, concurrency }: SynthConfig, latencyMs: number): Estimate | null {
  if (model.provider === "simulator") return null;
  const parallel = Math.min(concurrency, model.concurrency);
  const perMinute = model.requestsPerMinute ?? Number.POSITIVE_INFINITY;
  return estimate((end) => Math.max((calls[end] * latencyMs) / 1000 / parallel, (60 * calls[end]) / perMinute));
}

/** The mean size of the calls at a step over the runs that have one. */
function shapeAt(shapes: readonly RunShape[], step: number): CallSize {
  const there = shapes.flatMap((shape) => shape.steps[step] ?? shape.steps.at(-1) ?? []);
  const mean = (kind: "prompt" | "completion"): Estimate =>
    estimate((end) => there.reduce((sum, size) => sum + size[kind][end], 0) / Math.max(1, there.length));
  return { prompt: mean("prompt"), completion: mean("completion") };
}

function totalOf(parts: readonly PlannedPart[]): SynthPlan["total"] {
  const sum = (of: (part: PlannedPart) => Estimate): Estimate =>
    estimate((end) => parts.reduce((total, part) => total + of(part)[end], 0));
  const known = (of: (part: PlannedPart) => Estimate | null): Estimate | null => {
    const values = parts.flatMap((part) => of(part) ?? []);
    return values.length < parts.length ? null : estimate((end) => values.reduce((total, one) => total + one[end], 0));
  };
  return {
    calls: sum(({ calls }) => calls),
    promptTokens: sum(({ promptTokens }) => promptTokens),
    completionTokens: sum(({ completionTokens }) => completionTokens),
    money: known(({ money }) => money),
    seconds: known(({ seconds }) => seconds),
  };
}

function basisOf(
  config: SynthConfig,
  profiles: readonly RegimeProfile[],
  made: number,
  options: PlanOptions,
): string[] {
  const isSimulated = config.model.provider === "simulator";
  return [
    `each strategy was run on ${made} made-up failed runs per regime (${profiles.map(({ regime }) => regime).join(", ")}); low and high: the cheaper and the dearer regime, two standard errors out`,
    options.failureShare !== undefined
      ? "share of failed runs: as given"
      : isSimulated && options.steps === undefined
        ? "share of failed runs: of the sample, with its 95% interval"
        : "share of failed runs: unknown, taken as 20 / 50 / 80%; set --failure-share once you know it",
    isSimulated
      ? "tokens: characters / 5, 4, 3 of the sample's prompts and answers"
      : "tokens: the prompts' fixed part / 5, 4, 3 characters; 60, 250, 800 tokens a turn, which the log carries on",
    ...(isSimulated ? [] : [`time: ${options.latencyMs} ms a call, runs side by side up to concurrency, no retries`]),
    ...(config.search.prior === undefined
      ? []
      : [
          `the prior names the right step in ${config.search.priorStrength} of the runs; its own calls are not counted`,
        ]),
  ];
}
