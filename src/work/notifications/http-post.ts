/** One request of HTTP to a receiver of notifications: to the address that was checked, without redirects, within a time. */
import { request as requestPlain, type RequestOptions } from "node:http";
import { request as requestTls } from "node:https";
import { LIMITS } from "../../base/schema/limits.ts";
import type { Outcome } from "./channel.ts";

export interface PostRequest {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** Dialled instead of what the name resolves to. */
  readonly address?: string | undefined;
}

interface Answer {
  readonly status: number;
  readonly retryAfter: string | undefined;
}

export function post({ url, headers, body, address }: PostRequest, signal: AbortSignal): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const request = (url.protocol === "https:" ? requestTls : requestPlain)(url, {
    method: "POST",
    headers: { ...headers, "content-length": body.length },
    // A connection of its own: nothing that another receiver left open is used.
    agent: false,
    signal,
    ...(address === undefined ? {} : { lookup: pinned(address) }),
  });
  request.once("response", (response) => {
    resolve({ status: response.statusCode ?? 0, retryAfter: response.headers["retry-after"] });
    // What it says is of no interest, and may be without end.
    response.destroy();
  });
  request.once("error", reject);
  request.end(body);
  return promise;
}

function pinned(address: string): NonNullable<RequestOptions["lookup"]> {
  const family = address.includes(":") ? 6 : 4;
  return (_host, options, found) => (options.all === true ? found(null, [{ address, family }]) : found(null, address, family));
}

const MOST_WAIT_MS = LIMITS.notificationsMs / 4;

/** What an answer means for a notification. Redirects are not followed: they could lead anywhere. */
export function outcomeOf({ status, retryAfter }: Answer, who: string): Outcome {
  if (status >= 200 && status < 300) return { sent: true };
  const again = status >= 500 || [408, 425, 429].includes(status);
  const seconds = Number(retryAfter ?? Number.NaN);
  const wait = Number.isFinite(seconds) && seconds > 0 ? { afterMs: Math.min(seconds * 1000, MOST_WAIT_MS) } : {};
  const redirect = status >= 300 && status < 400 ? ", a redirect, which is not followed" : "";
  return { sent: false, reason: `${who} answered with ${status}${redirect}.`, again, ...wait };
}

/** What went wrong on the way, for a person. */
export function failure(who: string, error: unknown): Outcome {
  const why =
    error instanceof Error
      ? error.name === "AbortError" || error.name === "TimeoutError"
        ? "it took too long"
        : error.message
      : String(error);
  return { sent: false, reason: `${who} could not be reached: ${why.slice(0, 200)}.`, again: true };
}
