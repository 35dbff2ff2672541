/**
 * Waits of a run for its model API. Two tell of them: the gateway, which sees the refusal first and knows its end, and the agent, if it
 * says so itself. What the second one says again is no news.
 */
import type { Run, RunEventBody } from "../../base/schema/run.ts";

type ModelWait = "rate_limit" | "retry";

/** Two ends that are closer than this are one. */
const SAME_END_MS = 1000;

export class ModelWaits {
  #for: ModelWait | undefined;
  /** When it ends; null if that is not known. */
  #until: number | null = null;

  /** As an earlier server left it. */
  constructor({ activity, activityUntil }: Pick<Run, "activity" | "activityUntil">) {
    if (activity !== "rate_limit") return;
    this.#for = "rate_limit";
    this.#until = timeOf(activityUntil);
  }

  /** What it waits for now. */
  get for(): ModelWait | undefined {
    return this.#for;
  }

  /** Notes an event of the run. False for one that says what is known already. */
  isNews(event: RunEventBody, now: number): boolean {
    if (event.type === "waiting" && event.for !== "person") return this.#began(event.for, timeOf(event.until), now);
    if (event.type === "resumed" && event.for !== "person") return this.#ended();
    if (event.type === "tool_call" || event.type === "turn") this.#for = undefined;
    return true;
  }

  #began(what: ModelWait, until: number | null, now: number): boolean {
    if (this.#for !== undefined && what === "rate_limit" && this.#isKnown(until, now)) return false;
    this.#for = what;
    this.#until = until;
    return true;
  }

  /** An end that is not known adds nothing while the wait that is known goes on. */
  #isKnown(until: number | null, now: number): boolean {
    if (until === null) return this.#until === null || this.#until > now;
    return this.#until !== null && Math.abs(until - this.#until) < SAME_END_MS;
  }

  #ended(): boolean {
    const isOpen = this.#for !== undefined;
    this.#for = undefined;
    return isOpen;
  }
}

function timeOf(at: string | null): number | null {
  const time = at === null ? Number.NaN : Date.parse(at);
  return Number.isNaN(time) ? null : time;
}
