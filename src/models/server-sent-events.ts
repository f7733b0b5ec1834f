import { createParser } from "eventsource-parser";
import { RootstepError } from "../errors.ts";

/** An event larger than this is no delta of a completion. In characters. */
const LARGEST_EVENT = 8 * 1024 * 1024;

/**
 * The data of each server-sent event, in order, however the bytes were cut. An event without its closing blank line is
 * not yielded (it was cut off).
 * @throws RootstepError MODEL_BAD_BODY where an event is too large
 */
export async function* eventData(chunks: AsyncIterable<Uint8Array>, where: string): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let ready: string[] = [];
  const parser = createParser({
    maxBufferSize: LARGEST_EVENT,
    onEvent: (event) => {
      ready.push(event.data);
    },
    onError: (error) => {
      // Unknown fields are to be ignored (HTML specification, 9.2.6).
      if (error.type !== "max-buffer-size-exceeded") return;
      throw new RootstepError("MODEL_BAD_BODY", {
        what: `The model server streamed an event of more than ${LARGEST_EVENT} characters`,
        where,
        retryable: false,
      });
    },
  });
  for await (const chunk of chunks) {
    parser.feed(decoder.decode(chunk, { stream: true }));
    const events = ready;
    ready = [];
    yield* events;
  }
}
