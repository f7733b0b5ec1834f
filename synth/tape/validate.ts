import { asRootstepError, RootstepError } from "../../src/errors.ts";
import { storedQuestion, toolKey } from "../tools/tool-key.ts";
import { readTape, type TapeFault } from "./loader.ts";
import { requestKey } from "./request-key.ts";

export interface TapeValidation {
  readonly calls: number;
  /** Exchanges with tools. */
  readonly tools: number;
  readonly bodies: number;
  /** False where the recording was interrupted. */
  readonly ended: boolean;
  readonly faults: readonly TapeFault[];
  /** What a killed recorder left unfinished: no fault, but not there. */
  readonly torn: readonly string[];
}

/**
 * Checks everything a tape says of itself: layout, sums, bodies against their addresses, request keys against bodies.
 * @throws RootstepError FILE_MISSING
 */
export function validateTape(path: string): TapeValidation {
  const faults: TapeFault[] = [];
  const note = (error: unknown): void => {
    const { code, what, where } = asRootstepError(error);
    if (code !== "TAPE_DAMAGED" && code !== "TAPE_VERSION") throw error;
    faults.push({ code, what, where: where ?? path });
  };
  try {
    const tape = readTape(path, (fault) => faults.push(fault));
    let bodies = 0;
    for (const address of tape.bodies.addresses) {
      bodies++;
      attempt(() => tape.bodies.get(address), note);
    }
    for (const call of tape.calls) {
      attempt(() => {
        if (requestKey(call.endpoint, tape.bodies.get(call.request.body)) === call.request.key) return;
        const what = `call ${call.index}: the request's key does not match its body`;
        throw new RootstepError("TAPE_DAMAGED", { what, where: path });
      }, note);
    }
    for (const exchange of tape.tools) {
      attempt(() => {
        const question = storedQuestion(exchange, Buffer.from(tape.bodies.get(exchange.request.body)));
        if (toolKey(question) === exchange.request.key) return;
        const what = `exchange ${exchange.index} with ${exchange.tool}: the request's key does not match what it asks`;
        throw new RootstepError("TAPE_DAMAGED", { what, where: path });
      }, note);
    }
    tape.bodies.close();
    return {
      calls: tape.calls.length,
      tools: tape.tools.length,
      bodies,
      ended: tape.end !== undefined,
      faults: unique(faults),
      torn: tape.torn,
    };
  } catch (error) {
    note(error);
    return { calls: 0, tools: 0, bodies: 0, ended: false, faults: unique(faults), torn: [] };
  }
}

function attempt(check: () => void, note: (error: unknown) => void): void {
  try {
    check();
  } catch (error) {
    note(error);
  }
}

function unique(faults: readonly TapeFault[]): TapeFault[] {
  return [...new Map(faults.map((fault) => [`${fault.where} ${fault.what}`, fault])).values()];
}
