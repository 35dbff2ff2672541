/**
 * The newest record, noted beside the database: whoever cuts records off its end does not match the note any more. It is written
 * over in place, in one piece far smaller than a sector, so that no crash leaves half of one; and it needs no space on a full disk.
 */
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";

export interface Anchor {
  readonly sequence: number;
  readonly hash: string;
}

const SEQUENCE_DIGITS = 16;
const NOTE = /^ *(\d{1,16}) ([0-9a-f]{64})\s*$/;

export class AnchorFile {
  readonly #path: string;
  #file: number | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  /** Undefined where there is none, or nothing that could be one. */
  read(): Anchor | undefined {
    if (!existsSync(this.#path)) return undefined;
    const [, sequence, hash] = NOTE.exec(readFileSync(this.#path, "utf8")) ?? [];
    return sequence === undefined || hash === undefined ? undefined : { sequence: Number(sequence), hash };
  }

  write(anchor: Anchor): void {
    this.#file ??= this.#open(anchor);
    writeSync(this.#file, render(anchor), 0);
  }

  /** Made aside, so that an empty one is never a crash of ours. */
  #open(anchor: Anchor): number {
    if (this.read() === undefined) {
      const aside = openSync(`${this.#path}.new`, "w", 0o600);
      writeSync(aside, render(anchor), 0);
      fsyncSync(aside);
      closeSync(aside);
      renameSync(`${this.#path}.new`, this.#path);
    }
    return openSync(this.#path, "r+");
  }

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }
}

function render({ sequence, hash }: Anchor): string {
  return `${String(sequence).padStart(SEQUENCE_DIGITS)} ${hash}\n`;
}
