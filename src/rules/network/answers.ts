/** What a client inside is told when it does not get what it wants: why, and what to do. */
import { deny, type Denied, type DenialCode } from "./rules.ts";

/** To a CONNECT. */
export const ESTABLISHED = "HTTP/1.1 200 Connection Established\r\n\r\n";
export const UNANSWERED = deny("unreachable", "The host ended the connection before it answered.", "Try again.");

const STATUS: Partial<Record<DenialCode, number>> = {
  bad_request: 400,
  not_resolved: 502,
  unreachable: 502,
  not_recorded: 503,
  too_many_connections: 429,
  too_many_bytes: 429,
  too_many_names: 429,
  too_many_requests: 429,
};

/** Seconds after which trying again may help: a person may have answered by then, or other requests have ended. */
const RETRY_AFTER_SECONDS: Partial<Record<DenialCode, number>> = {
  secret_held: 10,
  effect_held: 10,
  host_held: 10,
  not_recorded: 5,
  too_many_connections: 5,
  too_many_bytes: 5,
  too_many_names: 5,
  too_many_requests: 5,
};

const PHRASE: Readonly<Record<number, string>> = {
  400: "Bad Request",
  403: "Forbidden",
  429: "Too Many Requests",
  502: "Bad Gateway",
  503: "Service Unavailable",
};

/** Clients read status lines into buffers of a few hundred bytes, some of them. */
const MOST_PHRASE = 300;

export interface Answer {
  readonly status: number;
  /** Holds the code and the sentence: apt and pip show nothing else, and many clients nothing else of a refused CONNECT. */
  readonly phrase: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export function answerTo({ code, reason, remedy }: Denied): Answer {
  const status = STATUS[code] ?? 403;
  const sentence = `${reason} ${remedy}`;
  const after = RETRY_AFTER_SECONDS[code];
  // npm shows `error` as it is, and takes it for a text.
  const body = `${JSON.stringify({ error: sentence, code })}\n`;
  return {
    status,
    phrase: `${PHRASE[status] ?? "Refused"} (${code}): ${onOneLine(sentence)}`,
    headers: {
      "content-type": "application/json",
      "content-length": String(Buffer.byteLength(body)),
      "x-viv-code": code,
      ...(after === undefined ? {} : { "retry-after": String(after) }),
      connection: "close",
    },
    body,
  };
}

/** What a status line can hold. */
function onOneLine(text: string): string {
  return text.replaceAll(/[^\x20-\x7e]+/g, " ").slice(0, MOST_PHRASE);
}

/** The same as bytes; the answer to HEAD is without its body. */
export function rawAnswer(denied: Denied, method = "GET"): string {
  const { status, phrase, headers, body } = answerTo(denied);
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${phrase}\r\n${lines.join("")}\r\n${method === "HEAD" ? "" : body}`;
}
