/** Fires by the clock. What was missed is caught up once; a time of day that comes twice, since the clock was set back, fires once. */
import { Alarm, type Clock } from "../clock.ts";
import type { CronLine, MissedTimes } from "../cron-line.ts";
import type { Cursor, Saw, TriggerSource } from "./trigger.ts";

export class ScheduleTrigger implements TriggerSource {
  readonly #line: CronLine;
  readonly #clock: Clock;
  readonly #saw: Saw;
  readonly #alarm: Alarm;
  /** Up to when it has looked. */
  #looked: Date;
  #telling: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(line: CronLine, clock: Clock, cursor: Cursor, saw: Saw) {
    this.#line = line;
    this.#clock = clock;
    this.#saw = saw;
    const last = typeof cursor["looked"] === "string" ? Date.parse(cursor["looked"]) : clock.now();
    this.#looked = new Date(last);
    this.#alarm = new Alarm(clock, () => this.#ring());
  }

  async start(): Promise<void> {
    this.#ring();
    await this.#telling;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#alarm.close();
    await this.#telling;
  }

  #ring(): void {
    this.#telling = this.#telling
      .then(() => this.#tell())
      .catch(() => undefined)
      .then(() => {
        if (!this.#isStopped) this.#alarm.set(this.nextAt()?.getTime() ?? null);
      });
  }

  async #tell(): Promise<void> {
    const now = new Date(this.#clock.now());
    // A clock that was set back goes on from there: times that fired already are known by their key.
    if (now < this.#looked) this.#looked = now;
    const missed = this.#line.missed(this.#looked, now);
    // The key is the time of day, so that none fires twice.
    if (missed !== null)
      await this.#saw([{ key: `schedule:${missed.last.toISOString()}`, text: textOf(missed) }], { looked: now.toISOString() });
    this.#looked = now;
  }

  nextAt(): Date | null {
    return this.#line.next(new Date(Math.max(this.#looked.getTime(), this.#clock.now())));
  }

  async look(): Promise<{ wouldFire: boolean; seen: string }> {
    const next = this.nextAt();
    return {
      wouldFire: false,
      seen: next === null ? "It is never due again." : `It is due next at ${next.toISOString().slice(0, 16).replace("T", " ")} UTC.`,
    };
  }
}

function textOf({ last, count }: MissedTimes): string {
  const due = `It was due at ${last.toISOString()}.`;
  return count === 1 ? due : `${due} ${count - 1} earlier times were missed.`;
}
