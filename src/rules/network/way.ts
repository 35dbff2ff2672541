/** From a connection of which the server has no copy to the first address that is reached: the mover dials it. */
import type { Answered, AskedConnection, Fetched } from "../../base/host/asked-connection.ts";
import { attempts, type Attempt } from "./dialling.ts";
import type { ReleasedHost } from "./gate.ts";
import type { Authority } from "./host.ts";
import type { Session } from "./session.ts";

export class Way {
  readonly #session: Session;
  readonly #asked: AskedConnection;
  readonly #to: Authority;
  readonly #dial: (attempt: Attempt) => Fetched;
  /** The first address; it is dialled while the disk writes the record. */
  #first: Fetched | undefined;

  constructor(session: Session, asked: AskedConnection, to: Authority, dial: (attempt: Attempt) => Fetched) {
    this.#session = session;
    this.#asked = asked;
    this.#to = to;
    this.#dial = dial;
  }

  dial(addresses: readonly string[]): void {
    const [first] = attempts(addresses);
    if (first !== undefined) this.#first = this.#begin(first);
  }

  /** What came of it. `ready` is called before an address may be used. */
  async go({ addresses, follow }: ReleasedHost, ready?: () => void): Promise<Answered> {
    for (const [index, attempt] of attempts(addresses).entries()) {
      if (this.#asked.signal.aborted) break;
      const fetched = (index === 0 ? this.#first : undefined) ?? this.#begin(attempt);
      ready?.();
      fetched.go();
      const answer = await fetched.answer;
      if (answer === "undialled") continue;
      follow(fetched);
      return answer;
    }
    return "undialled";
  }

  #begin(attempt: Attempt): Fetched {
    const { host, port } = this.#to;
    const outside = this.#dial(attempt);
    this.#session.begin({ host, port, outside, cut: () => outside.cut() });
    return outside;
  }
}
