/**
 * Refusals of the model gateway, in the words of the API that was called. The status decides whether an agent tries again: what
 * trying again can't change gets one that agents end on, what waiting changes gets `retry-after`. docs/MODELS.md has the table.
 */
import type { ServerResponse } from "node:http";
import type { ModelShape } from "../../base/schema/model.ts";

interface Words {
  /** HTTP status and the API's own word for it, by the API's shape. */
  readonly anthropic: readonly [status: number, type: string];
  readonly openai: readonly [status: number, code: string];
  readonly gemini: readonly [status: number, name: string];
  /** Seconds after which trying again may help; absent where it never does. */
  readonly retryAfterSeconds?: number;
}

/** Claude Code and Gemini CLI end on it at once. Codex would try 403 six times, and ends on 400 alone. */
const FORBIDDEN: Words = {
  anthropic: [403, "permission_error"],
  openai: [400, "permission_denied"],
  gemini: [403, "PERMISSION_DENIED"],
};
/** Codex ends on 429 at once, and waits on 503; the others wait on both. */
const LATER: Words = { anthropic: [429, "rate_limit_error"], openai: [503, "rate_limit_exceeded"], gemini: [429, "RESOURCE_EXHAUSTED"] };
const UNAVAILABLE: Words = { anthropic: [503, "api_error"], openai: [503, "server_error"], gemini: [503, "UNAVAILABLE"] };
const INVALID: Words = {
  anthropic: [400, "invalid_request_error"],
  openai: [400, "invalid_request_error"],
  gemini: [400, "INVALID_ARGUMENT"],
};

/** Every way in which the gateway refuses a request. */
export const REFUSALS = {
  /** The request itself is wrong. */
  invalid_request: INVALID,
  too_large: { anthropic: [413, "request_too_large"], openai: [400, "request_too_large"], gemini: [400, "INVALID_ARGUMENT"] },
  /** A call that is not passed on. Programs look for calls that not every server has, and do without on 404. */
  no_such_call: { anthropic: [404, "not_found_error"], openai: [404, "not_found"], gemini: [404, "NOT_FOUND"] },
  no_such_provider: FORBIDDEN,
  /** There is no login, it can't be opened, or it is bound to another host. */
  no_login: FORBIDDEN,
  /** The provider does not take the login: it has expired or was revoked. */
  login_refused: FORBIDDEN,
  /** The provider does not have the model, or does not give it to this login. */
  model_refused: FORBIDDEN,
  /** A person said no. */
  secret_denied: FORBIDDEN,
  /** A person was asked and has not answered yet. */
  secret_held: { ...LATER, retryAfterSeconds: 10 },
  budget_used_up: { anthropic: [402, "billing_error"], openai: [400, "insufficient_quota"], gemini: [402, "FAILED_PRECONDITION"] },
  /** Requests under way hold the rest of a budget. */
  budget_held: { ...LATER, retryAfterSeconds: 5 },
  too_many_requests: { ...LATER, retryAfterSeconds: 2 },
  sandbox_removed: FORBIDDEN,
  /** What answers there is not the API, or not one that the gateway can use. */
  provider_unusable: FORBIDDEN,
  provider_unreachable: {
    anthropic: [502, "api_error"],
    openai: [502, "server_error"],
    gemini: [502, "UNAVAILABLE"],
    retryAfterSeconds: 5,
  },
  server_fault: { ...UNAVAILABLE, retryAfterSeconds: 5 },
} as const satisfies Record<string, Words>;

export type RefusalKind = keyof typeof REFUSALS;

/** Thrown while a request is served. Programs inside read the message: it names no file of the machine. */
export class Refusal extends Error {
  readonly kind: RefusalKind;

  constructor(kind: RefusalKind, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = "Refusal";
    this.kind = kind;
  }
}

export interface RefusalAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export function answerOf({ kind, message }: Refusal, shape: ModelShape): RefusalAnswer {
  const words: Words = REFUSALS[kind];
  const [status, word] = words[shape];
  const { retryAfterSeconds } = words;
  // The clients of Anthropic and OpenAI look at this header before the status.
  const again = retryAfterSeconds === undefined ? { "x-should-retry": "false" } : { "retry-after": String(retryAfterSeconds) };
  return {
    status,
    headers: { "content-type": "application/json", ...again },
    body: `${JSON.stringify(BODIES[shape]({ status, word, message, retryAfterSeconds }))}\n`,
  };
}

interface Said {
  readonly status: number;
  readonly word: string;
  readonly message: string;
  readonly retryAfterSeconds: number | undefined;
}

const BODIES: Readonly<Record<ModelShape, (said: Said) => object>> = {
  anthropic: ({ word, message }) => ({ type: "error", error: { type: word, message } }),
  openai: ({ word, message }) => ({ error: { message, type: word, param: null, code: word } }),
  gemini: ({ status, word, message, retryAfterSeconds }) => ({
    error: {
      code: status,
      message,
      status: word,
      ...(retryAfterSeconds === undefined
        ? {}
        : { details: [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: `${retryAfterSeconds}s` }] }),
    },
  }),
};

export function refuse(response: ServerResponse, shape: ModelShape, refusal: Refusal): void {
  if (response.headersSent || response.destroyed) {
    // Half an answer must not look like a whole one.
    response.destroy();
    return;
  }
  const { status, headers, body } = answerOf(refusal, shape);
  // What of the request was not read would be taken for the next one.
  response.writeHead(status, { ...headers, "content-length": Buffer.byteLength(body), connection: "close" });
  response.end(body);
}
