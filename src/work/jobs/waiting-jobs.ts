/** Jobs that wait for their turn: the highest priority first, among equals in the order in which they came. */
import type { JobRow } from "../../base/store/rows.ts";

export class WaitingJobs {
  readonly #lines = new Map<number, string[]>();
  readonly #rows = new Map<string, JobRow>();

  get size(): number {
    return this.#rows.size;
  }

  has(id: string): boolean {
    return this.#rows.has(id);
  }

  add(row: JobRow): void {
    this.#rows.set(row.id, row);
    const line = this.#lines.get(row.priority) ?? [];
    this.#lines.set(row.priority, line);
    line.push(row.id);
  }

  /** Takes one out, whose turn it is or not. Its place in line is passed over later. */
  take(id: string): JobRow | undefined {
    const row = this.#rows.get(id);
    this.#rows.delete(id);
    return row;
  }

  next(): JobRow | undefined {
    for (const priority of [...this.#lines.keys()].toSorted((one, other) => other - one)) {
      const line = this.#lines.get(priority) ?? [];
      for (let id = line.shift(); id !== undefined; id = line.shift()) {
        const row = this.take(id);
        if (row !== undefined) return row;
      }
      this.#lines.delete(priority);
    }
    return undefined;
  }
}
