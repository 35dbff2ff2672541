/** A program of the user's own, with the notification as JSON on its standard input. No shell, so that no text becomes a command. */
import { run } from "../../../base/host/run.ts";
import { VivError } from "../../../base/schema/errors.ts";
import type { ChannelConfigOf } from "../../../base/schema/notification.ts";
import { SENT, type Channel, type Message, type Outcome } from "../channel.ts";
import { plainLine } from "../text.ts";

const MOST_OUTPUT_BYTES = 64 * 1024;
const SHOWN_CHARACTERS = 200;

export class CommandChannel implements Channel {
  readonly #config: ChannelConfigOf<"command">;
  readonly #env: Readonly<Record<string, string>>;

  constructor(config: ChannelConfigOf<"command">, env: Readonly<Record<string, string>>) {
    this.#config = config;
    this.#env = env;
  }

  async send(message: Message, signal: AbortSignal): Promise<Outcome> {
    const [program = "", ...args] = this.#config.command;
    const within = { env: this.#env, timeoutMs: this.#config.timeout, maxOutputBytes: MOST_OUTPUT_BYTES, signal };
    try {
      const { code, stderr } = await run(program, args, { ...within, input: [Buffer.from(`${JSON.stringify(message)}\n`)] });
      if (code === 0) return SENT;
      const ending = code === null ? "was killed or ran out of time" : `ended with ${code}`;
      const said = plainLine(stderr.split("\n").at(-1) ?? "", SHOWN_CHARACTERS);
      return { sent: false, reason: `${program} ${ending}${said === "" ? "" : `: ${said}`}.`, again: true };
    } catch (error) {
      // One that is not there, or is no program, is not there in a minute either.
      const known = VivError.from(error);
      return { sent: false, reason: plainLine(known.message, SHOWN_CHARACTERS), again: known.code !== "unsupported" };
    }
  }
}
