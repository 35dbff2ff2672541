/** A line of cron with its time zone: when it is due next, and what was missed. */
import { Cron } from "croner";
import { VivError } from "../../base/schema/errors.ts";

/** Times that are counted of those missed; the rest is "more". */
const MOST_COUNTED = 1_000;

export interface MissedTimes {
  readonly last: Date;
  /** How many there were, at most a thousand. */
  readonly count: number;
}

export class CronLine {
  readonly #cron: Cron;

  /** Throws for a line that is none, or that is never due. */
  constructor(line: string, timezone: string | undefined) {
    try {
      this.#cron = new Cron(line, { paused: true, ...(timezone === undefined ? {} : { timezone }) });
    } catch (error) {
      const why = error instanceof Error ? error.message.replace(/^CronPattern: /, "") : String(error);
      throw new VivError("invalid_input", `${JSON.stringify(line)} is no line of cron: ${why.replace(/\.$/, "")}.`, {
        remedy: "Write minute, hour, day, month and weekday, such as `0 3 * * *` for three at night.",
        cause: error,
      });
    }
    if (this.next(new Date(0)) === null)
      throw new VivError("invalid_input", `${JSON.stringify(line)} is never due: there is no such day.`, {
        remedy: "Name a day that exists.",
      });
  }

  next(after: Date): Date | null {
    return this.#cron.nextRun(after);
  }

  /** What was due after one time and up to another; null if nothing was. */
  missed(after: Date, until: Date): MissedTimes | null {
    let last: Date | undefined;
    let count = 0;
    for (let at = this.next(after); at !== null && at <= until; at = this.next(at)) {
      last = at;
      count += 1;
      if (count === MOST_COUNTED) return { last: this.#lastBefore(until) ?? at, count };
    }
    return last === undefined ? null : { last, count };
  }

  /** The newest time up to one, looked for in steps back that double. */
  #lastBefore(until: Date): Date | undefined {
    for (let back = 1_000; back < 400 * 24 * 3_600_000; back *= 2) {
      let found: Date | undefined;
      let steps = 0;
      const from = new Date(until.getTime() - back);
      for (let at = this.next(from); at !== null && at <= until && steps < MOST_COUNTED; at = this.next(at)) {
        found = at;
        steps += 1;
      }
      if (found !== undefined) return found;
    }
    return undefined;
  }
}

/** Throws for a line that is none, or that is never due. */
export function requireCronLine(line: string, timezone: string | undefined): CronLine {
  return new CronLine(line, timezone);
}
