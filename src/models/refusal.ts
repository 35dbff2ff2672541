/** Refusals in the words of the API that was called, so that every client understands them. */
import type { ServerResponse } from "node:http";
import type { ModelShape } from "../schema/model.ts";

type Kind = "budget" | "invalid" | "not_found" | "too_large" | "busy" | "upstream" | "unavailable";

const STATUS: Readonly<Record<Kind, number>> = {
  budget: 402,
  invalid: 400,
  not_found: 404,
  too_large: 413,
  busy: 429,
  upstream: 502,
  unavailable: 503,
};
const TYPES: Readonly<Record<ModelShape, Readonly<Record<Kind, string>>>> = {
  anthropic: {
    budget: "billing_error",
    invalid: "invalid_request_error",
    not_found: "not_found_error",
    too_large: "request_too_large",
    busy: "rate_limit_error",
    upstream: "api_error",
    unavailable: "api_error",
  },
  openai: {
    budget: "insufficient_quota",
    invalid: "invalid_request_error",
    not_found: "invalid_request_error",
    too_large: "invalid_request_error",
    busy: "rate_limit_exceeded",
    upstream: "server_error",
    unavailable: "server_error",
  },
};
/** Trying again helps; for all others the clients of both APIs are told that it does not. */
const PASSING: readonly Kind[] = ["busy", "upstream", "unavailable"];

/** A request that is not sent on, or whose answer can't be had. */
export class Refusal extends Error {
  readonly kind: Kind;

  constructor(kind: Kind, message: string) {
    super(message);
    this.kind = kind;
  }
}

export function refuse(response: ServerResponse, shape: ModelShape, { kind, message }: Refusal): void {
  if (response.headersSent || response.destroyed) {
    // Half an answer must not look like a whole one.
    response.destroy();
    return;
  }
  const type = TYPES[shape][kind];
  const error = shape === "anthropic" ? { type, message } : { message, type, param: null, code: type };
  const text = `${JSON.stringify(shape === "anthropic" ? { type: "error", error } : { error })}\n`;
  response.writeHead(STATUS[kind], {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(text),
    // What of the request was not read would be taken for the next one.
    connection: "close",
    ...(PASSING.includes(kind) ? {} : { "x-should-retry": "false" }),
  });
  response.end(text);
}
