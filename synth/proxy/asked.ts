import { bodyAddress } from "../tape/bodies.ts";
import type { Asked } from "../tape/matcher.ts";
import type { Redactor } from "../tape/redact.ts";
import { canonicalBody, keyOfCanonical } from "../tape/request-key.ts";
import { redactedBody } from "./call-log.ts";
import type { ProxyRequest } from "./request.ts";

/** What the matcher has to know of a request, worked out when it asks. */
export function askedBy(request: ProxyRequest, redact: Redactor): Asked {
  let body: Buffer | undefined;
  let text: string | undefined;
  let key: string | undefined;
  const clean = (): Buffer => {
    body ??= redactedBody(request.body, redact);
    return body;
  };
  const canonical = (): string => {
    text ??= canonicalBody(clean());
    return text;
  };
  return {
    lane: request.lane.name,
    // Bytes with a secret in them are on no tape: they find nothing here and are looked up by their redacted key.
    raw: `${request.endpoint} ${bodyAddress(request.body)}`,
    key() {
      key ??= keyOfCanonical(request.endpoint, canonical());
      return key;
    },
    text: canonical,
  };
}
