import Table from "cli-table3";

/** A plain text table for the terminal: a title, a header row, cells as text, numbers to the right. */
export function textTable(title: string, header: readonly string[], rows: readonly (readonly string[])[]): string {
  const table = new Table({
    head: [...header],
    style: { head: [], border: [], compact: true },
    colAligns: header.map((_, column) => (rows.every((row) => isNumeric(row[column])) ? "right" : "left")),
  });
  for (const row of rows) table.push([...row]);
  return `${title}\n${table.toString()}`;
}

function isNumeric(cell: string | undefined): boolean {
  return cell === undefined || cell === "" || cell === "–" || /^[-+]?[\d.,]/u.test(cell);
}

/** A share in percent with its 95% interval and n: `83.3 [79.1, 86.8] n=360`. */
export function shareCell(
  hits: number,
  n: number,
  interval: (hits: number, n: number) => { low: number; high: number },
): string {
  if (n === 0) return "– n=0";
  const { low, high } = interval(hits, n);
  const percent = (value: number): string => (100 * value).toFixed(1);
  return `${percent(hits / n)} [${percent(low)}, ${percent(high)}] n=${n}`;
}
