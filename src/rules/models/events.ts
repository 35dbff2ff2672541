/** Server-sent events, one at a time: each is passed on as soon as its last byte is there. */
const END = /\r\n\r\n|\n\n|\r\r/;

export class EventSplitter {
  #rest = "";
  readonly #decoder = new TextDecoder();
  readonly #most: number;

  constructor(mostCharacters: number) {
    this.#most = mostCharacters;
  }

  /** Whole events with the line breaks that end them. Undefined if one is longer than any may be. */
  add(chunk: Uint8Array): string[] | undefined {
    const text = this.#rest + this.#decoder.decode(chunk, { stream: true });
    const events: string[] = [];
    let from = 0;
    for (let found = END.exec(text); found !== null; found = END.exec(text.slice(from))) {
      const end = from + found.index + found[0].length;
      events.push(text.slice(from, end));
      from = end;
    }
    this.#rest = text.slice(from);
    return this.#rest.length > this.#most ? undefined : events;
  }

  /** What came after the last whole event. */
  get rest(): string {
    return this.#rest;
  }
}

/** The JSON of an event; undefined for comments, for `[DONE]` and for what is no JSON. */
export function dataOf(event: string): unknown {
  const lines = event.split(/\r\n|\n|\r/).filter((line) => line.startsWith("data:"));
  if (lines.length === 0) return undefined;
  try {
    return JSON.parse(lines.map((line) => line.slice(5)).join("\n")) as unknown;
  } catch {
    // `[DONE]`, or an API of another kind: it is passed on all the same.
    return undefined;
  }
}
