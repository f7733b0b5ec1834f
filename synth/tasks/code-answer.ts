/**
 * The Python in an answer: its last block fenced as Python, else its last fenced block, else the text as it is. Reasoning in
 * `<think>` is dropped; an unclosed fence counts to the end.
 */
export function pythonIn(answer: string): string {
  const text = answer.replace(/<think>[\s\S]*?<\/think>/gu, "");
  const blocks = [...text.matchAll(/```(?<tag>python|py)?[^\S\n]*\n(?<code>[\s\S]*?)(?:```|$)/giu)];
  const block = blocks.findLast(({ groups }) => groups?.tag !== undefined) ?? blocks.at(-1);
  return (block?.groups?.code ?? text).trim();
}
