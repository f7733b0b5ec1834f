/** A quote within a JSON string has a backslash before it: this can only be the end of a name and the start of a list. */
const NAME = '"prompt_token_ids":';

/**
 * Takes the prompt's tokens out of a server's answer where they are written as they were sent: vLLM repeats them in every
 * completion, and a long prompt, parsed n times, would be most of a rollout's processor time. An echo that differs by a byte stays,
 * to be parsed and compared.
 * @param prompt the prompt's tokens as JSON
 * @returns the answer with `null` in place of each equal echo
 */
export function withoutPromptEcho(answer: Buffer, prompt: string): Buffer {
  const echo = Buffer.from(prompt);
  const pieces: Buffer[] = [];
  let kept = 0;
  for (let at = answer.indexOf(NAME); at >= 0; at = answer.indexOf(NAME, at)) {
    at += NAME.length;
    const end = at + echo.byteLength;
    if (end > answer.byteLength || answer.compare(echo, 0, echo.byteLength, at, end) !== 0) continue;
    pieces.push(answer.subarray(kept, at), NULL);
    kept = at = end;
  }
  return pieces.length === 0 ? answer : Buffer.concat([...pieces, answer.subarray(kept)]);
}

const NULL = Buffer.from("null");
