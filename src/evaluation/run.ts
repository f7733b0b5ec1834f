import { asRootstepError, RootstepError } from "../errors.ts";
import type { Attribution, ConfiguredMethod, MethodContext } from "../methods/method.ts";
import { type MethodView, methodView } from "../methods/view.ts";
import type { EvaluationItem } from "./datasets.ts";
import { type Prediction, predictionKey, sortPredictions } from "./prediction.ts";

export interface EvaluateOptions {
  readonly items: readonly EvaluationItem[];
  readonly method: ConfiguredMethod;
  /** Model or policy and the seed; the epoch is set per prediction. */
  readonly context: Omit<MethodContext, "epoch" | "signal">;
  /** True shows the reference answer (the papers' "w/ G"). */
  readonly withReference: boolean;
  /** Repetitions per log; 1 unless told. */
  readonly epochs?: number | undefined;
  /** Predictions under way at once; 1 unless told. */
  readonly concurrency?: number | undefined;
  /** Only the first so many items. */
  readonly limit?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** By `predictionKey`; these are kept, except that failed calls are made again. */
  readonly done?: ReadonlyMap<string, Prediction> | undefined;
  /** Told of each new prediction as it is made; the log counts as done when what it returns has resolved. */
  readonly onPrediction?: ((prediction: Prediction) => void | Promise<void>) | undefined;
  /** Milliseconds, for latencies. */
  readonly now?: (() => number) | undefined;
}

export interface EvaluationResult {
  /** Kept and new ones, in the order of the items. */
  readonly predictions: readonly Prediction[];
  /** Predictions a complete run has. */
  readonly planned: number;
  /** Why the run stopped early: budget, interruption, a server nobody can reach. What was made before is in `predictions`. */
  readonly stoppedBy?: RootstepError;
}

/**
 * Runs a method over items × epochs.
 *
 * A model call that fails for one log (a refused request, a time-out after all retries) is recorded with its error, counted
 * as wrong and made again on resume. What would fail for every log (budget, interruption, no server, a bad key) stops the
 * run: nothing new begins, what is under way ends, and the reason is returned.
 *
 * @throws RootstepError for anything else: a fault of rootstep's own, a wrong setting, what `onPrediction` throws
 */
export async function evaluate(options: EvaluateOptions): Promise<EvaluationResult> {
  const { method, signal, onPrediction } = options;
  const now = options.now ?? (() => performance.now());
  const items = options.items.slice(0, options.limit);
  const epochs = options.epochs ?? 1;
  const jobs = items.flatMap((item) => Array.from({ length: epochs }, (_, epoch) => ({ item, epoch })));
  const kept = jobs.flatMap(({ item, epoch }) => {
    const known = options.done?.get(predictionKey({ itemId: item.id, epoch }));
    return known !== undefined && known.error === undefined ? [known] : [];
  });
  const keptKeys = new Set(kept.map(predictionKey));
  const open = jobs.filter(({ item, epoch }) => !keptKeys.has(predictionKey({ itemId: item.id, epoch })));

  const made: Prediction[] = [];
  let stoppedBy: RootstepError | undefined;
  const viewOf = viewsOf(open, options.withReference);

  /** The prediction, or the error that ends the run. */
  const attempt = async ({ item, epoch }: (typeof jobs)[number]): Promise<Prediction | RootstepError> => {
    const started = now();
    try {
      const view = viewOf(item);
      const context = { ...options.context, epoch, ...(signal && { signal }) };
      const attribution = await method.attribute(view, context);
      return prediction(item.id, epoch, method.id, attribution, now() - started);
    } catch (thrown) {
      const error = asRootstepError(thrown);
      return isOfOneLog(error) ? failure(item.id, epoch, method.id, error, now() - started) : error;
    }
  };
  const run = async (job: (typeof jobs)[number]): Promise<void> => {
    if (stoppedBy !== undefined) return;
    if (signal?.aborted === true) {
      stoppedBy = new RootstepError("INTERRUPTED", { what: "the evaluation was interrupted" });
      return;
    }
    const outcome = await attempt(job);
    if (outcome instanceof RootstepError) {
      stoppedBy ??= outcome;
      return;
    }
    try {
      made.push(outcome);
      await onPrediction?.(outcome);
    } catch (thrown) {
      // A prediction that cannot be kept (a full disk) ends the run as well.
      stoppedBy ??= asRootstepError(thrown);
    }
  };

  const queue = open.values();
  const lane = async (): Promise<void> => {
    for (const job of queue) await run(job);
  };
  await Promise.all(Array.from({ length: Math.min(options.concurrency ?? 1, open.length) }, lane));
  if (stoppedBy !== undefined && !isStop(stoppedBy)) throw stoppedBy;
  const predictions = sortPredictions([...kept, ...made], items);
  return { predictions, planned: jobs.length, ...(stoppedBy !== undefined && { stoppedBy }) };
}

/** A log's view, made once for all its epochs and kept no longer than until the last has begun. */
function viewsOf(
  jobs: readonly { readonly item: EvaluationItem }[],
  withReference: boolean,
): (item: EvaluationItem) => MethodView {
  const left = new Map<EvaluationItem, number>();
  for (const { item } of jobs) left.set(item, (left.get(item) ?? 0) + 1);
  const views = new Map<EvaluationItem, MethodView>();
  return (item) => {
    const view = views.get(item) ?? methodView(item.trajectory, { withReference });
    const others = (left.get(item) ?? 1) - 1;
    left.set(item, others);
    if (others > 0) views.set(item, view);
    else views.delete(item);
    return view;
  };
}

/** Failures that say nothing about other logs. */
function isOfOneLog(error: RootstepError): boolean {
  switch (error.code) {
    case "MODEL_TIMEOUT":
    case "MODEL_RATE_LIMITED":
    case "MODEL_SERVER_ERROR":
    case "MODEL_REFUSED_REQUEST":
    case "MODEL_STREAM_CUT":
    case "MODEL_BAD_BODY":
    case "MODEL_WRONG_SHAPE":
    case "VOCABULARY":
      return true;
    default:
      return false;
  }
}

/** Reasons to end early that the caller tells the user about, with everything made so far kept. */
function isStop(error: RootstepError): boolean {
  switch (error.code) {
    case "BUDGET_REACHED":
    case "INTERRUPTED":
    case "MODEL_UNREACHABLE":
    case "MODEL_AUTH":
      return true;
    default:
      return false;
  }
}

function prediction(itemId: string, epoch: number, method: string, made: Attribution, latencyMs: number): Prediction {
  const {
    agent,
    step,
    calls,
    parsePath,
    confidence,
    ranking,
    rawOutput,
    parseFailure,
    noStepNamed,
    answers,
    cut,
    usage,
  } = made;
  return {
    itemId,
    epoch,
    method,
    agent,
    step,
    ...(confidence !== undefined && { confidence }),
    ...(ranking !== undefined && { ranking: [...ranking] }),
    evidence: [...made.evidence],
    ...(rawOutput !== undefined && { rawOutput }),
    parsePath,
    ...(parseFailure !== undefined && { parseFailure }),
    ...(noStepNamed !== undefined && { noStepNamed }),
    ...(answers !== undefined && { answers }),
    ...(cut !== undefined && { cut }),
    calls,
    ...(usage !== undefined && { usage }),
    latencyMs,
  };
}

function failure(itemId: string, epoch: number, method: string, error: RootstepError, latencyMs: number): Prediction {
  return {
    itemId,
    epoch,
    method,
    agent: null,
    step: null,
    evidence: [],
    parsePath: "none",
    calls: 1,
    latencyMs,
    error: { code: error.code, message: error.message },
  };
}
