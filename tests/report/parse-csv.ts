/** The rows of an RFC 4180 text, as objects by the names of its first line. */
export function parseCsv(text: string): Record<string, string>[] {
  const rows: string[][] = [[]];
  let field = "";
  let quoted = false;
  const endField = () => {
    rows.at(-1)!.push(field);
    field = "";
  };
  for (let i = 0; i < text.length; i++) {
    const character = text[i]!;
    if (quoted) {
      if (character !== '"') field += character;
      else if (text[i + 1] === '"') field += text[++i];
      else quoted = false;
    } else if (character === '"') quoted = true;
    else if (character === ",") endField();
    else if (character === "\r" && text[i + 1] === "\n") {
      endField();
      rows.push([]);
      i++;
    } else field += character;
  }
  const [header, ...lines] = rows.slice(0, -1);
  return lines.map((line) => {
    if (line.length !== header!.length) throw new Error(`${line.length} fields in place of ${header!.length}`);
    return Object.fromEntries(line.map((value, i) => [header![i]!, value]));
  });
}
