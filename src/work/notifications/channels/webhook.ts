/** A request of HTTP with the notification as JSON, signed as Standard Webhooks has it: receivers find libraries for that, or ten lines in docs/NOTIFICATIONS.md. */
import { createHmac } from "node:crypto";
import type { ChannelConfigOf } from "../../../base/schema/notification.ts";
import type { Secrets } from "../../../rules/secrets/secrets.ts";
import type { Channel, Message, Outcome } from "../channel.ts";
import { failure, outcomeOf, post } from "../http-post.ts";

/** Keys as Standard Webhooks writes them are base64 behind this; any other text is its own bytes. */
const KEY_PREFIX = "whsec_";

export function signatureOf(secret: string, id: string, timestamp: number, body: Buffer): string {
  const key = secret.startsWith(KEY_PREFIX) ? Buffer.from(secret.slice(KEY_PREFIX.length), "base64") : Buffer.from(secret);
  return `v1,${createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest("base64")}`;
}

export class WebhookChannel implements Channel {
  readonly #url: URL;
  readonly #secret: string | undefined;
  readonly #secrets: Pick<Secrets, "valueFor">;

  constructor({ url, secret }: ChannelConfigOf<"webhook">, secrets: Pick<Secrets, "valueFor">) {
    this.#url = new URL(url);
    this.#secret = secret;
    this.#secrets = secrets;
  }

  async send(message: Message, signal: AbortSignal): Promise<Outcome> {
    const body = Buffer.from(JSON.stringify(message));
    const timestamp = Math.floor(Date.now() / 1000);
    const headers: Record<string, string> = {
      "content-type": "application/json",
      "user-agent": "vivarium",
      "webhook-id": message.id,
      "webhook-timestamp": String(timestamp),
    };
    if (this.#secret !== undefined) headers["webhook-signature"] = signatureOf(this.#keyOf(this.#secret), message.id, timestamp, body);
    try {
      return outcomeOf(await post({ url: this.#url, headers, body }, signal), this.#url.host);
    } catch (error) {
      return failure(this.#url.host, error);
    }
  }

  /** The key signs for one place: a secret that is bound elsewhere is not used. */
  #keyOf(secret: string): string {
    const { protocol, hostname, port, pathname } = this.#url;
    const scheme = protocol === "https:" ? "https" : "http";
    return this.#secrets.valueFor(secret, {
      protocol: scheme,
      host: hostname.replace(/^\[(.*)\]$/, "$1"),
      port: port === "" ? (scheme === "https" ? 443 : 80) : Number(port),
      method: "POST",
      path: pathname,
    });
  }
}
