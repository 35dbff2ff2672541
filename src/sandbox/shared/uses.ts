/** What keeps a sandbox from being idle (BOX-8), as it is told to a caller that asks why it goes on. */

export class Uses {
  readonly #all = new Set<{ readonly what: string }>();
  readonly #onEnd: () => void;

  /** `onEnd` hears of the end of each. */
  constructor(onEnd: () => void) {
    this.#onEnd = onEnd;
  }

  /** Begins one; call the result to end it, once or more often. */
  begin(what: string): () => void {
    const use = { what };
    this.#all.add(use);
    return () => {
      if (this.#all.delete(use)) this.#onEnd();
    };
  }

  get any(): boolean {
    return this.#all.size > 0;
  }

  /** Each once, in the order in which they began. */
  list(): string[] {
    return [...new Set([...this.#all].map(({ what }) => what))];
  }
}
