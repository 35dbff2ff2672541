/** The notifications of this machine's own desktop, by notify-send. */
import { run } from "../../../base/host/run.ts";
import { VivError } from "../../../base/schema/errors.ts";
import { SENT, type Channel, type Message, type Outcome } from "../channel.ts";
import { plainLine } from "../text.ts";

const PATIENCE_MS = 10_000;
const SHOWN_CHARACTERS = 200;

export class DesktopChannel implements Channel {
  readonly #env: Readonly<Record<string, string>>;

  constructor(env: Readonly<Record<string, string>>) {
    this.#env = env;
  }

  async send({ kind, title, text, url }: Message, signal: AbortSignal): Promise<Outcome> {
    const urgency = kind === "question" ? "critical" : "normal";
    // What stands behind -- is never an option; a body has markup, a title has none.
    const args = ["--app-name=Vivarium", `--urgency=${urgency}`, "--", title, escaped(`${text}\n${url}`)];
    try {
      const { code, stderr } = await run("notify-send", args, { env: this.#env, timeoutMs: PATIENCE_MS, signal });
      if (code === 0) return SENT;
      const said = plainLine(stderr, SHOWN_CHARACTERS);
      return { sent: false, reason: `notify-send did not show it${said === "" ? "" : `: ${said}`}.`, again: false };
    } catch (error) {
      const missing = VivError.from(error).code === "unsupported";
      const reason = missing ? "notify-send is not installed (Debian: libnotify-bin)." : "notify-send took too long.";
      return { sent: false, reason, again: false };
    }
  }
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
