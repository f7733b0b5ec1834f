import { escapeHtml } from "./plots.ts";

/** A line of a plot; x ascends, null leaves a gap. */
export interface Series {
  readonly name: string;
  readonly points: readonly { readonly x: number; readonly y: number | null }[];
}

const AREA = { left: 58, top: 30, width: 340, height: 150 };
const FRAME = { width: AREA.left + AREA.width + 16, height: AREA.top + AREA.height + 44 };

/** Series over training steps as one inline SVG. Nothing to draw gives an empty frame that says so. */
export function linePlot(title: string, series: readonly Series[]): string {
  const drawn = series.flatMap(({ points }) => points.filter((point) => point.y !== null));
  const head =
    `<svg role="img" viewBox="0 0 ${FRAME.width} ${FRAME.height}" width="${FRAME.width}" height="${FRAME.height}">` +
    `<title>${escapeHtml(title)}</title><text class="title" x="${AREA.left}" y="16">${escapeHtml(title)}</text>`;
  if (drawn.length === 0)
    return `${head}<text class="tick" x="${AREA.left}" y="${AREA.top + 40}">no values</text></svg>`;
  const xs = bounds(drawn.map(({ x }) => x));
  const ys = bounds(drawn.map(({ y }) => y ?? 0));
  const x = (value: number): string => (AREA.left + ((value - xs.low) / (xs.high - xs.low)) * AREA.width).toFixed(1);
  const y = (value: number): string =>
    (AREA.top + (1 - (value - ys.low) / (ys.high - ys.low)) * AREA.height).toFixed(1);
  const bottom = AREA.top + AREA.height;
  const grid = [0, 0.5, 1].map((share) => {
    const value = ys.low + share * (ys.high - ys.low);
    return (
      `<line class="grid" x1="${AREA.left}" x2="${AREA.left + AREA.width}" y1="${y(value)}" y2="${y(value)}"/>` +
      `<text class="tick" x="${AREA.left - 6}" y="${Number(y(value)) + 4}" text-anchor="end">${shortNumber(value)}</text>`
    );
  });
  const ticks = [xs.low, xs.high].map(
    (value, i) =>
      `<text class="tick" x="${x(value)}" y="${bottom + 15}" text-anchor="${i === 0 ? "start" : "end"}">${shortNumber(value)}</text>`,
  );
  const lines = series.map(
    ({ points }, i) => `<path class="line line-${i}" d="${path(points, x, y)}"/>${lonePoints(points, x, y, i)}`,
  );
  const legend = series.map(
    ({ name }, i) =>
      `<text class="key key-${i}" x="${AREA.left + i * (AREA.width / series.length)}" y="${bottom + 34}">${escapeHtml(name)}</text>`,
  );
  return `${head}${[...grid, ...ticks, ...lines, ...(series.length > 1 ? legend : [])].join("")}</svg>`;
}

/** The styles of `linePlot`, for the page that holds it. */
export const LINE_PLOT_STYLE = `
svg .title { font: 600 13px system-ui, sans-serif; fill: currentColor }
svg .tick { font: 11px system-ui, sans-serif; fill: #687078 }
svg .key { font: 12px system-ui, sans-serif }
svg .grid { stroke: #d8dce0; stroke-width: 1 }
svg .line { fill: none; stroke-width: 1.8 }
svg .line-0 { stroke: #1f6feb } svg .dot-0, svg .key-0 { fill: #1f6feb }
svg .line-1 { stroke: #c2410c } svg .dot-1, svg .key-1 { fill: #c2410c }
svg .line-2 { stroke: #15803d } svg .dot-2, svg .key-2 { fill: #15803d }
`;

type Place = (value: number) => string;

function path(points: Series["points"], x: Place, y: Place): string {
  let drawing = false;
  return points
    .map((point) => {
      const step = point.y === null ? "" : `${drawing ? "L" : "M"}${x(point.x)} ${y(point.y)}`;
      drawing = point.y !== null;
      return step;
    })
    .join("");
}

/** A value between two gaps has no line: it is drawn as a dot. */
function lonePoints(points: Series["points"], x: Place, y: Place, series: number): string {
  const missing = (i: number): boolean => (points[i]?.y ?? null) === null;
  return points
    .map((point, i) =>
      point.y !== null && missing(i - 1) && missing(i + 1)
        ? `<circle class="dot-${series}" cx="${x(point.x)}" cy="${y(point.y)}" r="2.5"/>`
        : "",
    )
    .join("");
}

/** Lowest and highest, apart from each other even where all values are equal. */
function bounds(values: readonly number[]): { readonly low: number; readonly high: number } {
  const low = values.reduce((least, value) => Math.min(least, value), Number.POSITIVE_INFINITY);
  const high = values.reduce((most, value) => Math.max(most, value), Number.NEGATIVE_INFINITY);
  const margin = Math.abs(low) > 0 ? Math.abs(low) / 10 : 0.5;
  return high > low ? { low, high } : { low: low - margin, high: high + margin };
}

function shortNumber(value: number): string {
  const text =
    Math.abs(value) >= 1e4 || (value !== 0 && Math.abs(value) < 1e-3) ? value.toExponential(1) : value.toPrecision(3);
  return text.includes("e") ? text : String(Number(text));
}
