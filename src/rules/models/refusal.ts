/** Refusals in the words of the API that was called, so that every client understands them. */
import type { ServerResponse } from "node:http";
import type { ErrorCode, VivError } from "../../base/schema/errors.ts";
import type { ModelShape } from "../../base/schema/model.ts";

interface Words {
  readonly status: number;
  readonly anthropic: string;
  readonly openai: string;
  /** Trying again helps; for all others the clients of both APIs are told that it does not. */
  readonly passing: boolean;
}

const UNAVAILABLE: Words = { status: 503, anthropic: "api_error", openai: "server_error", passing: true };
const WORDS: Partial<Record<ErrorCode, Words>> = {
  budget_exceeded: { status: 402, anthropic: "billing_error", openai: "insufficient_quota", passing: false },
  invalid_input: { status: 400, anthropic: "invalid_request_error", openai: "invalid_request_error", passing: false },
  not_found: { status: 404, anthropic: "not_found_error", openai: "invalid_request_error", passing: false },
  too_large: { status: 413, anthropic: "request_too_large", openai: "invalid_request_error", passing: false },
  rate_limited: { status: 429, anthropic: "rate_limit_error", openai: "rate_limit_exceeded", passing: true },
  model_unreachable: { status: 502, anthropic: "api_error", openai: "server_error", passing: true },
};

export function refuse(response: ServerResponse, shape: ModelShape, { code, message }: VivError): void {
  if (response.headersSent || response.destroyed) {
    // Half an answer must not look like a whole one.
    response.destroy();
    return;
  }
  const words = WORDS[code] ?? UNAVAILABLE;
  const type = words[shape];
  const error = shape === "anthropic" ? { type, message } : { message, type, param: null, code: type };
  const text = `${JSON.stringify(shape === "anthropic" ? { type: "error", error } : { error })}\n`;
  response.writeHead(words.status, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(text),
    // What of the request was not read would be taken for the next one.
    connection: "close",
    ...(words.passing ? {} : { "x-should-retry": "false" }),
  });
  response.end(text);
}
