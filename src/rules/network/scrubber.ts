/**
 * Takes texts out of an answer while it streams, also where one is split between two pieces. Each byte of them becomes an asterisk:
 * the length of the answer stays, and with it whatever was said about that length.
 */

/** Shorter ones would be found where they only happen to stand. */
const SHORTEST = 8;
const STAR = 0x2a;

export class Scrubber {
  /** The longest first, so that one within another does not spoil it. */
  readonly #needles: readonly Buffer[];
  /** The end of what came, if a text may begin there. */
  #held = Buffer.alloc(0);

  constructor(texts: readonly string[]) {
    this.#needles = [...new Set(texts)]
      .filter((text) => text.length >= SHORTEST)
      .map((text) => Buffer.from(text, "latin1"))
      .toSorted((one, other) => other.length - one.length);
  }

  /** Whether there is anything to look for. */
  get looks(): boolean {
    return this.#needles.length > 0;
  }

  text(text: string): string {
    if (!this.looks) return text;
    const bytes = Buffer.from(text, "latin1");
    this.#star(bytes, bytes.length);
    return bytes.toString("latin1");
  }

  /** What can be passed on by now. */
  add(chunk: Buffer): Buffer {
    const data = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    const open = data.length - Math.max(0, ...this.#needles.map((needle) => beginning(data, needle)));
    this.#star(data, open);
    // The caller uses the memory of the chunk again after this call.
    this.#held = Buffer.from(data.subarray(open));
    return data.subarray(0, open);
  }

  /** The rest, once nothing comes any more. */
  end(): Buffer {
    const rest = this.#held;
    this.#held = Buffer.alloc(0);
    this.#star(rest, rest.length);
    return rest;
  }

  /** Texts that begin before a place. */
  #star(data: Buffer, before: number): void {
    for (const needle of this.#needles)
      for (let at = data.indexOf(needle); at >= 0 && at < before; at = data.indexOf(needle, at + needle.length))
        data.fill(STAR, at, at + needle.length);
  }
}

/** How many bytes at the end of the data are the beginning of the text. */
function beginning(data: Buffer, needle: Buffer): number {
  const first = needle[0] ?? 0;
  for (let at = Math.max(0, data.length - needle.length + 1); (at = data.indexOf(first, at)) >= 0; at += 1)
    if (data.subarray(at).equals(needle.subarray(0, data.length - at))) return data.length - at;
  return 0;
}
