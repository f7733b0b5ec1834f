import type { Dialect } from "./dialect.ts";
import { linesIn, nextSpeaker } from "./team-lines.ts";

/** AutoGen's SelectorGroupChat asks a model whose turn it is and shows it the conversation. */
export const autogenSelector: Dialect = {
  id: "autogen-selector",
  read(request) {
    const [only] = request.messages;
    const asks = /Read the above conversation\. Then select the next role from (\[.*\]) to play\./u.exec(
      only?.content ?? "",
    )?.[1];
    if (only === undefined || asks === undefined) return undefined;
    const next = nextSpeaker(linesIn([only.content]));
    // Once the answer is stated the chat has ended; whoever asks still gets a name that may speak.
    return { kind: "direct", reply: { content: next ?? "verifier" } };
  },
};
