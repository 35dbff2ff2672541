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
    return this.#sit();
  }

  /** For what runs already, such as commands of an earlier server: counted, never refused. */
  admit(): () => void {
    return this.#sit();
  }

  #sit(): () => void {
    this.#taken += 1;
    let seated = true;
    return () => {
      if (!seated) return;
      seated = false;
      this.#taken -= 1;
    };
  }
}
