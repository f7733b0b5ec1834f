import type { Confidence } from "../format.ts";
import { domainsIn } from "./release.ts";

/**
 * AgentRx is a folder with `ground_truth/` and the label file of at least one domain in it.
 * @throws RootstepError FILE_MISSING, FILE_UNREADABLE
 */
export async function detectAgentRx(source: string): Promise<Confidence> {
  return (await domainsIn(source)).length > 0 ? 1 : 0;
}
