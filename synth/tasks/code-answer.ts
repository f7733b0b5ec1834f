/**
 * The Python in an answer: its last fenced block, else the text as it is. Reasoning in `<think>` is dropped; an unclosed
 * fence counts to the end.
 */
export function pythonIn(answer: string): string {
  const text = answer.replace(/<think>[\s\S]*?<\/think>/gu, "");
  const blocks = [...text.matchAll(/```(?:python|py)?[^\S\n]*\n([\s\S]*?)(?:```|$)/giu)];
  return (blocks.at(-1)?.[1] ?? text).trim();
}
