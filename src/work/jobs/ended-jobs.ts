/** Jobs that have ended, the oldest first, and which of them are too many, too old or too large to be kept. */
import { LIMITS } from "../../base/schema/limits.ts";
import type { JobRow } from "../../base/store/rows.ts";

type EndedJob = Pick<JobRow, "id" | "endedAt" | "textBytes">;

export class EndedJobs {
  readonly #jobs: EndedJob[] = [];
  #bytes = 0;

  add({ id, endedAt, textBytes }: EndedJob): void {
    this.#jobs.push({ id, endedAt, textBytes });
    this.#bytes += textBytes;
  }

  /** Ids of at most so many that go now; they are forgotten here. */
  takeSurplus(most: number, now = Date.now()): string[] {
    const oldest = new Date(now - LIMITS.keptJobMs).toISOString();
    const isSurplus = ({ endedAt }: EndedJob): boolean =>
      this.#jobs.length > LIMITS.keptJobs || this.#bytes > LIMITS.keptJobBytes || (endedAt ?? "") < oldest;
    const surplus: string[] = [];
    for (let first = this.#jobs[0]; first !== undefined && surplus.length < most && isSurplus(first); first = this.#jobs[0]) {
      this.#jobs.shift();
      this.#bytes -= first.textBytes;
      surplus.push(first.id);
    }
    return surplus;
  }
}
