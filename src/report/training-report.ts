import { LINE_PLOT_STYLE, linePlot, type Series } from "./line-plot.ts";
import { escapeHtml } from "./plots.ts";

/** A group of plots under one heading. */
export interface TrainingSection {
  readonly name: string;
  readonly plots: readonly { readonly title: string; readonly series: readonly Series[] }[];
}

/** The course of a training run as one HTML file: plots as inline SVG, no script, nothing loaded from anywhere. */
export function trainingHtml(title: string, facts: readonly string[], sections: readonly TrainingSection[]): string {
  const parts = sections.map(
    ({ name, plots }) =>
      `<section><h2>${escapeHtml(name)}</h2><div class="plots">${plots.map((plot) => linePlot(plot.title, plot.series)).join("")}</div></section>`,
  );
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1280px; margin: 2rem auto; padding: 0 1rem; color: #16191d }
h1 { font-size: 1.4rem } h2 { font-size: 1.1rem; margin-top: 2rem }
.plots { display: flex; flex-wrap: wrap; gap: 1rem }
${LINE_PLOT_STYLE}</style>
</head>
<body>
<h1>${escapeHtml(title)}</h1>
<ul>${facts.map((fact) => `<li>${escapeHtml(fact)}</li>`).join("")}</ul>
${parts.join("\n")}
</body>
</html>
`;
}
