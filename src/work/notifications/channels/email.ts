/** A mail by SMTP. The library writes headers and body, so that no text of a notification becomes a header. Loaded at first use. */
import { readFileSync } from "node:fs";
import type { ChannelConfigOf } from "../../../base/schema/notification.ts";
import type { Secrets } from "../../../rules/secrets/secrets.ts";
import { SENT, type Channel, type Message, type Outcome } from "../channel.ts";
import { plainLine } from "../text.ts";

const CONNECT_MS = 10_000;
const SHOWN_CHARACTERS = 200;

type EmailSecrets = Pick<Secrets, "valueFor" | "recordOwnUse">;

export class EmailChannel implements Channel {
  readonly #config: ChannelConfigOf<"email">;
  readonly #secrets: EmailSecrets;

  constructor(config: ChannelConfigOf<"email">, secrets: EmailSecrets) {
    this.#config = config;
    this.#secrets = secrets;
  }

  async send({ id, title, text, url, project }: Message, signal: AbortSignal): Promise<Outcome> {
    const { from, to, host } = this.#config;
    const body = [text, "", url, ...(project === null ? [] : ["", `Project: ${project}`])].join("\n");
    const { promise: late, reject } = Promise.withResolvers<never>();
    const giveUp = (): void => reject(new Error("it took too long"));
    signal.addEventListener("abort", giveUp, { once: true });
    const mail = {
      from: { name: "Vivarium", address: from },
      to: [...to],
      subject: title,
      text: `${body}\n`,
      // The same when it is sent again: mailboxes show one of them.
      messageId: `<${id}@${from.slice(from.lastIndexOf("@") + 1)}>`,
      disableFileAccess: true,
      disableUrlAccess: true,
    };
    try {
      signal.throwIfAborted();
      // What was begun goes on within the limits of the transport: the library can't take it back.
      await Promise.race([late, this.#transport().then((transport) => transport.sendMail(mail))]);
      return SENT;
    } catch (error) {
      return refusal(host, error);
    } finally {
      signal.removeEventListener("abort", giveUp);
    }
  }

  async #transport() {
    const { createTransport } = await import("nodemailer");
    const { host, port, security, ca } = this.#config;
    const auth = await this.#login();
    return createTransport({
      host,
      port,
      secure: security === "tls",
      // Required, not tried: a server between that hides STARTTLS gets neither password nor mail.
      requireTLS: security === "starttls",
      ignoreTLS: security === "none",
      ...(auth === undefined ? {} : { auth }),
      ...(ca === undefined ? {} : { tls: { ca: readFileSync(ca, "utf8") } }),
      connectionTimeout: CONNECT_MS,
      greetingTimeout: CONNECT_MS,
      socketTimeout: CONNECT_MS,
    });
  }

  /** The password leaves with this mail alone, to the host and port that it is bound to. */
  async #login(): Promise<{ user: string; pass: string } | undefined> {
    const { host, port, user, secret } = this.#config;
    if (user === undefined || secret === undefined) return undefined;
    const destination = { protocol: "https", host, port, method: "SMTP", path: "/" } as const;
    const pass = this.#secrets.valueFor(secret, destination);
    await this.#secrets.recordOwnUse(destination, secret);
    return { user, pass };
  }
}

function refusal(host: string, error: unknown): Outcome {
  const { code, responseCode, message } = error as { code?: string; responseCode?: number; message?: string };
  // A wrong password is not tried again: some servers lock the account.
  const again = code !== "EAUTH" && (responseCode === undefined || responseCode < 500);
  return { sent: false, reason: `${host} did not take the mail: ${plainLine(message ?? String(error), SHOWN_CHARACTERS)}.`, again };
}
