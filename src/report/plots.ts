/** Text that may stand in HTML and SVG, in attributes as well. */
export function escapeHtml(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#39;");
}

/** One line of a dot plot: a share with its interval. */
export interface DotRow {
  readonly label: string;
  readonly kind: "measured" | "published";
  /** Fractions of 1. */
  readonly value: number;
  readonly low: number | null;
  readonly high: number | null;
  /** Printed at the right: `30.16 n=126`. */
  readonly text: string;
}

const LABEL = 230;
const AREA = 320;
const TEXT = 105;
const ROW = 22;
const TOP = 34;

const at = (value: number): string => value.toFixed(1);

/** Shares on a common axis of 0 to 100%, intervals as bars, the floor as a dashed line. */
export function dotPlot(title: string, rows: readonly DotRow[], floor: { value: number; name: string } | null): string {
  const height = TOP + rows.length * ROW + 34;
  const x = (share: number): number => LABEL + share * AREA;
  const bottom = TOP + rows.length * ROW;
  const grid = [0, 0.25, 0.5, 0.75, 1].map(
    (share) =>
      `<line class="grid" x1="${at(x(share))}" x2="${at(x(share))}" y1="${TOP - 4}" y2="${bottom}"/>` +
      `<text class="tick" x="${at(x(share))}" y="${bottom + 14}" text-anchor="middle">${100 * share}%</text>`,
  );
  const lines = rows.map((row, position) => {
    const y = TOP + position * ROW + ROW / 2;
    const interval =
      row.low === null || row.high === null
        ? ""
        : `<line class="interval" x1="${at(x(row.low))}" x2="${at(x(row.high))}" y1="${at(y)}" y2="${at(y)}"/>`;
    return (
      `<g class="${row.kind}"><title>${escapeHtml(`${row.label}: ${row.text}`)}</title>` +
      `<text class="label" x="${LABEL - 10}" y="${at(y + 4)}" text-anchor="end">${escapeHtml(shortened(row.label, 34))}</text>` +
      `${interval}${mark(row.kind, x(row.value), y)}` +
      `<text class="value" x="${LABEL + AREA + 12}" y="${at(y + 4)}">${escapeHtml(row.text)}</text></g>`
    );
  });
  const bar =
    floor === null
      ? ""
      : `<line class="floor" x1="${at(x(floor.value))}" x2="${at(x(floor.value))}" y1="${TOP - 8}" y2="${bottom}"/>` +
        `<text class="floor-name" x="${at(x(floor.value))}" y="${bottom + 29}" text-anchor="${floor.value > 0.55 ? "end" : "start"}">floor ${(100 * floor.value).toFixed(2)}: ${escapeHtml(floor.name)}</text>`;
  return svg(title, LABEL + AREA + TEXT, height, [...grid, bar, ...lines]);
}

function mark(kind: DotRow["kind"], x: number, y: number): string {
  return kind === "measured"
    ? `<circle class="mark" cx="${at(x)}" cy="${at(y)}" r="5"/>`
    : `<path class="mark" d="M${at(x)} ${at(y - 5)}l5 5l-5 5l-5-5z"/>`;
}

/** One run of a scatter plot. */
export interface ScatterPoint {
  readonly label: string;
  readonly cost: number;
  /** Fractions of 1. */
  readonly accuracy: number;
  readonly frontier: boolean;
}

const PLOT = { left: 60, right: 20, top: 34, width: 570, height: 240 };

/** Accuracy over cost, the frontier as a stepped line. Costs of 0 stand at the left edge of a logarithmic axis. */
export function scatterPlot(title: string, axis: string, points: readonly ScatterPoint[]): string {
  const positive = points.map(({ cost }) => cost).filter((cost) => cost > 0);
  const logarithmic = positive.length > 0 && Math.max(...positive) / Math.min(...positive) > 20;
  const scale = costScale(positive, logarithmic);
  const highest = Math.min(1, Math.max(0.1, Math.ceil((Math.max(...points.map((p) => p.accuracy)) + 0.05) * 10) / 10));
  const x = (cost: number): number => PLOT.left + 14 + scale.position(cost) * (PLOT.width - 28);
  const y = (accuracy: number): number => PLOT.top + (1 - accuracy / highest) * PLOT.height;
  const bottom = PLOT.top + PLOT.height;
  const steps = Math.min(5, Math.round(highest * 10));
  const grid = Array.from({ length: steps + 1 }, (_, i) => (i * highest) / steps).map(
    (share) =>
      `<line class="grid" x1="${PLOT.left}" x2="${PLOT.left + PLOT.width}" y1="${at(y(share))}" y2="${at(y(share))}"/>` +
      `<text class="tick" x="${PLOT.left - 6}" y="${at(y(share) + 4)}" text-anchor="end">${(100 * share).toFixed(0)}%</text>`,
  );
  const ticks = scale.ticks.map(
    (cost) =>
      `<text class="tick" x="${at(x(cost))}" y="${bottom + 16}" text-anchor="middle">${escapeHtml(short(cost))}</text>`,
  );
  const frontier = points.filter((point) => point.frontier).sort((a, b) => a.cost - b.cost || a.accuracy - b.accuracy);
  const path = frontier
    .map((point, i) =>
      i === 0 ? `M${at(x(point.cost))} ${at(y(point.accuracy))}` : `H${at(x(point.cost))}V${at(y(point.accuracy))}`,
    )
    .join("");
  const labels = placed(points.map((point) => ({ ...point, px: x(point.cost), py: y(point.accuracy) })));
  const marks = labels.map(
    ({ label, accuracy, cost, px, py, ly, end, frontier: best }) =>
      `<g class="measured${best ? " best" : ""}"><title>${escapeHtml(`${label}: ${(100 * accuracy).toFixed(2)}% at ${short(cost)}`)}</title>` +
      `<circle class="mark" cx="${at(px)}" cy="${at(py)}" r="5"/>` +
      `<text class="label" x="${at(end ? px - 9 : px + 9)}" y="${at(ly + 4)}" text-anchor="${end ? "end" : "start"}">${escapeHtml(shortened(label, 44))}</text></g>`,
  );
  const name = `<text class="tick" x="${PLOT.left + PLOT.width / 2}" y="${bottom + 34}" text-anchor="middle">${escapeHtml(`${axis}${logarithmic ? " (logarithmic; 0 at the left edge)" : ""}`)}</text>`;
  return svg(title, PLOT.left + PLOT.width + PLOT.right, bottom + 44, [
    ...grid,
    ...ticks,
    name,
    path === "" ? "" : `<path class="frontier" d="${path}"/>`,
    ...marks,
  ]);
}

/** Labels pushed apart downwards where they would lie on each other. */
function placed<T extends { readonly px: number; readonly py: number }>(points: readonly T[]) {
  const middle = PLOT.left + PLOT.width / 2;
  const last = { start: Number.NEGATIVE_INFINITY, end: Number.NEGATIVE_INFINITY };
  return [...points]
    .sort((a, b) => a.py - b.py)
    .map((point) => {
      const end = point.px > middle;
      const side = end ? "end" : "start";
      const ly = Math.max(point.py, last[side] + 14);
      last[side] = ly;
      return { ...point, ly, end };
    });
}

interface Scale {
  /** 0 at the left edge, 1 at the right. */
  position(cost: number): number;
  readonly ticks: readonly number[];
}

function costScale(positive: readonly number[], logarithmic: boolean): Scale {
  if (positive.length === 0) return { position: () => 0, ticks: [0] };
  const most = Math.max(...positive);
  if (!logarithmic) return { position: (cost) => cost / most, ticks: [0, most / 2, most] };
  const low = Math.floor(Math.log10(Math.min(...positive)));
  const high = Math.ceil(Math.log10(most));
  const decades = Array.from({ length: high - low + 1 }, (_, i) => 10 ** (low + i));
  // A tenth of the axis is kept for costs of 0.
  return {
    position: (cost) => (cost <= 0 ? 0 : 0.1 + (0.9 * (Math.log10(cost) - low)) / Math.max(1, high - low)),
    ticks: [0, ...decades],
  };
}

const short = (value: number): string => {
  if (value === 0) return "0";
  if (value >= 1_000_000) return `${Number((value / 1_000_000).toPrecision(3))}M`;
  if (value >= 1000) return `${Number((value / 1000).toPrecision(3))}k`;
  return String(Number(value.toPrecision(3)));
};

const shortened = (text: string, most: number): string => (text.length <= most ? text : `${text.slice(0, most - 1)}…`);

function svg(title: string, width: number, height: number, parts: readonly string[]): string {
  return `<svg role="img" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" aria-label="${escapeHtml(title)}"><text class="title" x="0" y="16">${escapeHtml(title)}</text>${parts.join("")}</svg>`;
}
