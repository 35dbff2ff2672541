/** A bounded number of one thing at a time: the next one is refused, instead of waiting for something that may never end. */
import { VivError } from "../../base/schema/errors.ts";

export class ConcurrencyLimit {
  readonly #most: number;
  readonly #refusal: (most: number) => VivError;
  #taken = 0;

  constructor(most: number, refusal: (most: number) => VivError) {
    this.#most = most;
    this.#refusal = refusal;
  }

  /** Takes one and answers how to give it back; doing that twice is no harm. */
  take(): () => void {
    if (this.#taken >= this.#most) throw this.#refusal(this.#most);
    return this.#count();
  }

  /** For what runs already, such as commands of an earlier server: counted, never refused. */
  admit(): () => void {
    return this.#count();
  }

  #count(): () => void {
    this.#taken += 1;
    let counted = true;
    return () => {
      if (!counted) return;
      counted = false;
      this.#taken -= 1;
    };
  }
}
