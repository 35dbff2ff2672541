/** A trigger that looks from time to time, one look after the other. What goes wrong is said, and looked at again. */
import { errorText } from "../../../base/host/log.ts";
import { Alarm, type Clock } from "../clock.ts";
import type { Trouble, TriggerSource } from "./trigger.ts";

export abstract class PolledTrigger implements TriggerSource {
  readonly #clock: Clock;
  readonly #everyMs: number;
  readonly #trouble: Trouble;
  readonly #alarm: Alarm;
  protected readonly stopping = new AbortController();
  #work: Promise<void> = Promise.resolve();
  #next: number;
  /** Whether a look waits for the one that is under way: more would see nothing more. */
  #isQueued = false;

  constructor(clock: Clock, everyMs: number, trouble: Trouble) {
    this.#clock = clock;
    this.#everyMs = everyMs;
    this.#trouble = trouble;
    this.#next = clock.now();
    this.#alarm = new Alarm(clock, () => this.#ring());
  }

  /** Looks, and tells what is new. */
  protected abstract poll(): Promise<void>;
  abstract look(): Promise<{ readonly wouldFire: boolean; readonly seen: string }>;

  async start(): Promise<void> {
    this.pollNow();
    await Promise.resolve();
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    this.#alarm.close();
    await this.#work;
  }

  /** Looks at once, and then again after the usual time. */
  protected pollNow(): void {
    this.#next = this.#clock.now();
    this.#ring();
  }

  #ring(): void {
    const now = this.#clock.now();
    // A clock that was set back must not end the looking.
    if (this.#next > now + this.#everyMs) this.#next = now;
    if (this.#next > now) return this.#alarm.set(this.#next);
    this.#next = now + this.#everyMs;
    if (this.#isQueued) return;
    this.#isQueued = true;
    this.#work = this.#work.then(() => this.#once());
  }

  async #once(): Promise<void> {
    this.#isQueued = false;
    if (this.stopping.signal.aborted) return;
    try {
      await this.poll();
      this.#trouble(null);
    } catch (error) {
      if (!this.stopping.signal.aborted) this.#trouble(errorText(error));
    }
    if (!this.stopping.signal.aborted) this.#alarm.set(this.#next);
  }
}
