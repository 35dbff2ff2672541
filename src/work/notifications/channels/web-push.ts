/** A browser that is subscribed: its push service wakes the service worker, also without an open page (RFC 8030). */
import { isMissing } from "../../../rules/network/resolver.ts";
import { VivError } from "../../../base/schema/errors.ts";
import type { PushBrowserRow } from "../../../base/store/rows.ts";
import type { Channel, Message, Outcome } from "../channel.ts";
import { failure, outcomeOf, post } from "../http-post.ts";
import { encryptPush } from "../push/encryption.ts";
import type { PushEndpoints } from "../push/endpoint.ts";
import type { ServerKey } from "../push/server-key.ts";

/** How long the push service keeps it for a phone that is off. A question has a deadline; an hour later it is of no use. */
const KEPT_S = { question: 3_600, other: 24 * 3_600 } as const;
/** Status of a subscription that the browser has given up. */
const GONE = [404, 410];

export class WebPushChannel implements Channel {
  readonly #browser: Pick<PushBrowserRow, "endpoint" | "keys">;
  readonly #key: ServerKey;
  readonly #endpoints: PushEndpoints;
  readonly #contact: () => string;

  constructor(browser: Pick<PushBrowserRow, "endpoint" | "keys">, key: ServerKey, endpoints: PushEndpoints, contact: () => string) {
    this.#browser = browser;
    this.#key = key;
    this.#endpoints = endpoints;
    this.#contact = contact;
  }

  async send(message: Message, signal: AbortSignal): Promise<Outcome> {
    const { id, kind, title, text, link } = message;
    const url = new URL(this.#browser.endpoint);
    try {
      const address = await this.#endpoints.address(url);
      const headers = {
        authorization: this.#key.authorization(url, this.#contact()),
        "content-encoding": "aes128gcm",
        "content-type": "application/octet-stream",
        ttl: String(kind === "question" ? KEPT_S.question : KEPT_S.other),
        urgency: kind === "question" ? "high" : "normal",
        // One that waits for the browser already is replaced by the same one.
        topic: id,
      };
      const body = encryptPush(Buffer.from(JSON.stringify({ id, kind, title, text, link })), this.#browser.keys);
      const answer = await post({ url, headers, body, address }, signal);
      const outcome = outcomeOf(answer, url.host);
      return GONE.includes(answer.status)
        ? { sent: false, reason: "The browser takes no more messages.", again: false, gone: true }
        : outcome;
    } catch (error) {
      if (error instanceof VivError && error.code === "invalid_input") return { sent: false, reason: error.message, again: false };
      return isMissing(error) ? { sent: false, reason: `${url.host} has no address.`, again: true } : failure(url.host, error);
    }
  }
}
