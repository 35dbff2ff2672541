/** The newest hash, kept beside the database: whoever cuts records off its end does not match it any more. */
import { readFile, rename, writeFile } from "node:fs/promises";

export interface Anchor {
  readonly sequence: number;
  readonly hash: string;
}

export class AnchorFile {
  readonly #path: string;
  #newest = 0;
  #writing: Promise<void> = Promise.resolve();

  constructor(path: string) {
    this.#path = path;
  }

  async read(): Promise<Anchor | undefined> {
    try {
      const [sequence = "", hash = ""] = (await readFile(this.#path, "utf8")).trim().split(" ");
      return { sequence: Number(sequence), hash };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
  }

  /** One after the other, and never back to an older one. */
  write(anchor: Anchor): Promise<void> {
    const before = this.#writing.catch(() => undefined);
    return (this.#writing = before.then(() => (anchor.sequence > this.#newest ? this.#replace(anchor) : undefined)));
  }

  async #replace({ sequence, hash }: Anchor): Promise<void> {
    await writeFile(`${this.#path}.new`, `${sequence} ${hash}\n`, { mode: 0o600 });
    await rename(`${this.#path}.new`, this.#path);
    this.#newest = sequence;
  }
}
