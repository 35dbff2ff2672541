/**
 * The newest record, noted in a file beside the database: if records are cut off the end of the chain, the note does not match any
 * more. The file is overwritten in place, in one piece far smaller than a sector: no crash leaves half a note, and a full disk is no
 * obstacle.
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
