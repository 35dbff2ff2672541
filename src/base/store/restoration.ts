/**
 * A note that the database was brought back from a backup. What was made after the backup has no row: it must not be taken for
 * leftovers and removed before a person has said so, with `viv prune`.
 */
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";

interface Restored {
  /** Time of the backup. */
  readonly takenAt: string;
  /** Where the damaged database is kept. */
  readonly damaged: string;
}

export class Restoration {
  readonly #file: string;

  /** For the database at this path. */
  constructor(database: string) {
    this.#file = `${database}.restored`;
  }

  note({ takenAt, damaged }: Restored): void {
    writeFileSync(`${this.#file}.new`, JSON.stringify({ takenAt, damaged }), { mode: 0o600, flush: true });
    renameSync(`${this.#file}.new`, this.#file);
  }

  get isPending(): boolean {
    return existsSync(this.#file);
  }

  /** What the note says; undefined where there is none. */
  read(): Restored | undefined {
    if (!this.isPending) return undefined;
    const { takenAt, damaged } = JSON.parse(readFileSync(this.#file, "utf8")) as Restored;
    return { takenAt, damaged };
  }

  settle(): void {
    rmSync(this.#file, { force: true });
  }
}
