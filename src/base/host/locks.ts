/** Work on one key happens one at a time, in the order it was asked for. */
export class KeyedLocks {
  readonly #tails = new Map<string, Promise<void>>();

  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#tails.get(key);
    const done = Promise.withResolvers<void>();
    this.#tails.set(key, done.promise);
    try {
      if (before !== undefined) await before;
      return await work();
    } finally {
      if (this.#tails.get(key) === done.promise) this.#tails.delete(key);
      done.resolve();
    }
  }

  /** Whether something is under way or waits for this key. */
  busy(key: string): boolean {
    return this.#tails.has(key);
  }
}
