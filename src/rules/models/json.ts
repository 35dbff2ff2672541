/** JSON of requests. It is looked over before it is parsed: that takes the server's time, and a text may be made to take seconds of it. */
import { LIMITS } from "../../base/schema/limits.ts";
import { Refusal } from "./refusal.ts";

interface Shape {
  /** Fields at the top. */
  readonly fields: number;
  /** Objects, lists and what is in them. */
  readonly values: number;
  readonly depth: number;
}

const [QUOTE, BACKSLASH, COLON, COMMA] = [0x22, 0x5c, 0x3a, 0x2c];
const [OPEN_OBJECT, OPEN_LIST, CLOSE_OBJECT, CLOSE_LIST] = [0x7b, 0x5b, 0x7d, 0x5d];

export function parseObject(body: Buffer): Record<string, unknown> {
  const { fields, values, depth } = shapeOf(body);
  if (values > LIMITS.modelJsonValues || depth > LIMITS.modelJsonDepth)
    throw new Refusal("too_large", `A request has at most ${LIMITS.modelJsonValues} values, ${LIMITS.modelJsonDepth} deep.`);
  let value: unknown;
  try {
    value = JSON.parse(body.toString("utf8"));
  } catch {
    throw new Refusal("invalid_request", "The body is not JSON.");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new Refusal("invalid_request", "The body is not an object.");
  // Which of two counts is the provider's affair: it must not be another than the one that is priced.
  if (fields !== Object.keys(value).length) throw new Refusal("invalid_request", "A field of the request stands there twice.");
  return value as Record<string, unknown>;
}

/** Right for JSON, and quick for whatever else it is. */
function shapeOf(body: Buffer): Shape {
  let [open, fields, values, depth] = [0, 0, 0, 0];
  for (let at = 0; at < body.length; at += 1) {
    const byte = body[at];
    if (byte === QUOTE) at = endOfText(body, at);
    else if (byte === OPEN_OBJECT || byte === OPEN_LIST) {
      open += 1;
      values += 1;
      depth = Math.max(depth, open);
    } else if (byte === CLOSE_OBJECT || byte === CLOSE_LIST) open -= 1;
    else if (byte === COMMA) values += 1;
    else if (byte === COLON && open === 1) fields += 1;
  }
  return { fields, values, depth };
}

/** The quote that ends a text: one with an even number of backslashes before it. */
function endOfText(body: Buffer, start: number): number {
  for (let end = body.indexOf(QUOTE, start + 1); end >= 0; end = body.indexOf(QUOTE, end + 1)) {
    let before = end;
    while (body[before - 1] === BACKSLASH) before -= 1;
    if ((end - before) % 2 === 0) return end;
  }
  return body.length;
}
