import { type Paragraph, searchableOf } from "../../tasks/hotpotqa/hotpotqa.ts";
import type { AgentSystem } from "../system.ts";
import { createTeam, instructionsOf } from "../team.ts";
import { createLibrary, type Library } from "./library.ts";

const AGENTS = ["planner", "searcher", "reader", "answerer"] as const;
/** HotpotQA needs two; a planner that never says `(last)` is stopped here. */
const MAX_HOPS = 4;
const instructions = instructionsOf("searcher", AGENTS);

/**
 * The planner names what to look up, the searcher finds it with the tools Search and Lookup, the reader notes what helps,
 * the answerer answers. The tools work in process on the task's paragraphs.
 */
export const searcher: AgentSystem = {
  id: "searcher",
  title: "planner, searcher, reader and answerer over the paragraphs of a question",
  agents: AGENTS,
  sideEffects: "none",
  stepPolicy: "per-call",
  async run(task, model, signal) {
    const library = createLibrary(searchableOf(task).paragraphs);
    const team = createTeam(instructions, task, model, signal);
    let last: Paragraph | undefined;
    for (let hop = 1; hop <= MAX_HOPS; hop++) {
      const plan = await team.turn("planner", "Name the next thing to look up.");
      const action = await team.turn("searcher", "Find it.");
      const found = carriedOut(action, library, last);
      last = found.paragraph ?? last;
      team.observe("library", found.shown);
      await team.turn("reader", "Note what helps.");
      if (/\(last\)\.?\s*$/u.test(plan)) break;
    }
    const said = await team.turn("answerer", "Answer the question.");
    const answer = /Answer:\s*(.*)$/u.exec(said)?.[1]?.trim() ?? said.trim();
    return { answer: answer === "" ? undefined : answer };
  },
};

interface Found {
  readonly paragraph?: Paragraph;
  readonly shown: string;
}

function carriedOut(action: string, library: Library, last: Paragraph | undefined): Found {
  const [, tool, words = ""] = /(Search|Lookup)\[(.*)\]/u.exec(action) ?? [];
  if (tool === "Search") {
    const paragraph = library.search(words);
    return paragraph === undefined ? { shown: "nothing found." } : { paragraph, shown: shownAs(paragraph) };
  }
  if (tool !== "Lookup") return { shown: "say Search[QUERY] or Lookup[WORDS]." };
  if (last === undefined) return { shown: "there is no last paragraph." };
  const sentences = library.lookup(last, words);
  return { shown: sentences.length === 0 ? "no such words there." : shownAs({ ...last, sentences: [...sentences] }) };
}

const shownAs = ({ title, sentences }: Paragraph): string =>
  `[${title}] ${sentences.map((one) => one.trim()).join(" ")}`;
