/** The input of an agent's program: what was written, and how much of that it has not taken yet. */
import { errorText, type Logger } from "../../base/host/log.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { CommandStream } from "../../sandbox/commands/stream.ts";

export class AgentInput {
  readonly #log: Logger;
  #unread = 0;
  #taken = Promise.withResolvers<void>();

  constructor(log: Logger) {
    this.#log = log;
  }

  write(stream: CommandStream | undefined, line: string): void {
    if (stream === undefined) return;
    const data = Buffer.from(line);
    this.#unread += data.length;
    stream
      .write(data)
      .catch((error: unknown) => this.#log.info("an agent does not take its input", { error: errorText(error) }))
      .finally(() => {
        this.#unread -= data.length;
        this.#taken.resolve();
        this.#taken = Promise.withResolvers<void>();
      });
  }

  /** Resolves once it has read most of it, or has ended: one that asks and does not read the answers is not listened to until it does. */
  async untilRead({ end }: CommandStream, closed: Promise<never>): Promise<void> {
    if (this.#unread <= LIMITS.runUnreadBytes) return;
    const ended = end.then(
      () => true,
      () => true,
    );
    while (this.#unread > LIMITS.runUnreadBytes) if ((await Promise.race([this.#taken.promise, ended, closed])) === true) return;
  }
}
