/** The content of the last `\boxed{…}` (or `\fbox`), braces matched; undefined if there is none. */
export function boxedIn(text: string): string | undefined {
  const start = Math.max(text.lastIndexOf("\\boxed"), text.lastIndexOf("\\fbox"));
  if (start < 0) return undefined;
  const open = text.indexOf("{", start);
  if (open < 0) return /^\\f?boxed\s+(\S+)/u.exec(text.slice(start))?.[1]?.replace(/\$.*$/u, "");
  let depth = 0;
  for (let at = open; at < text.length; at++) {
    if (text[at] === "{") depth++;
    if (text[at] === "}" && --depth === 0) return text.slice(open + 1, at);
  }
  return undefined;
}

const SPACES = /\\(?:[!,;:> ]|quad|qquad)|~/gu;

/**
 * One way of writing what LaTeX writes in many: no delimiters, spacing, sizes, units, degree, currency and percent signs, no
 * grouping commas; `\frac12` with its braces. After Hendrycks et al. (2021), math_equivalence.py, and further.
 */
export function normalizeLatex(latex: string): string {
  return latex
    .trim()
    .replace(/^\$+|\$+$/gu, "")
    .replace(/^\\[([]|\\[)\]]$/gu, "")
    .replace(/\\(?:left|right|[bB]igg?[lrm]?|displaystyle|limits)(?![A-Za-z])/gu, "")
    .replace(/\\[dtc]frac(?![A-Za-z])/gu, "\\frac")
    .replace(/\\(?:mathrm|textbf|textit|mathbf|operatorname|mbox)(?![A-Za-z])/gu, "\\text")
    .replace(/\\(?:leq|leqslant)(?![A-Za-z])/gu, "\\le")
    .replace(/\\(?:geq|geqslant)(?![A-Za-z])/gu, "\\ge")
    .replace(/(\d)\{,\}(?=\d{3})/gu, "$1")
    .replace(/(\d)\\[!,;]?,\\[!;]?(?=\d{3})/gu, "$1")
    .replace(/\\\$|(?<!\\)\$/gu, "")
    .replace(/\\?%/gu, "")
    .replace(/\^\{?\\circ\}?|°|\\degree(?![A-Za-z])/gu, "")
    .replace(SPACES, " ")
    .replace(/−/gu, "-")
    .replace(/\\([\^])/gu, "$1")
    .replace(/\\text\s*\{([^{}]*)\}/gu, (_, words: string) => textPart(words))
    .replace(/\\frac\s*(\d)\s*(\d)/gu, "\\frac{$1}{$2}")
    .replace(/\\frac\s*(\d)\s*\{/gu, "\\frac{$1}{")
    .replace(/\\frac\s*(\{[^{}]*\})\s*(\d)/gu, "\\frac$1{$2}")
    .replace(/\\sqrt\s*(\d)/gu, "\\sqrt{$1}")
    .replace(/(?<![\d.])\.(?=\d)/gu, "0.")
    .replace(/\s+/gu, " ")
    .replace(/\s*([-+*/=(),{}[\]^<>])\s*/gu, "$1")
    .trim()
    .replace(/[.\s]+$/u, "")
    .trim();
}

/** Units and remarks at the end of a number say nothing; a word that stands for itself does. */
const textPart = (words: string): string => ` \u27e8${words.trim().toLowerCase()}\u27e9`;

/** `12 ⟨inches⟩` without its unit; `⟨east⟩` as it is. */
export function withoutUnit(normalized: string): string {
  return normalized.replace(/(?<=[\d}\])a-z])\s*\u27e8[^\u27e8\u27e9]*\u27e9(?:\^\{?\d\}?)?$/u, "").trim();
}

/** A whole number with commas between its thousands, without them. */
export function withoutGrouping(normalized: string): string {
  return /^-?\d{1,3}(?:,\d{3})+(?:\.\d+)?$/u.test(normalized) ? normalized.replaceAll(",", "") : normalized;
}
