/** How often a sandbox may do what: a bucket per sandbox and kind that refills evenly. */
import type { Rate } from "../../base/schema/gateway-contracts.ts";

interface Bucket {
  left: number;
  at: number;
}

export class Rates<Kind extends string> {
  readonly #rates: Readonly<Record<Kind, Rate>>;
  readonly #now: () => number;
  readonly #buckets = new Map<string, Map<Kind, Bucket>>();

  constructor(rates: Readonly<Record<Kind, Rate>>, now: () => number = () => performance.now()) {
    this.#rates = rates;
    this.#now = now;
  }

  /** Milliseconds until it may be done; 0 if it may now, and then it counts, as much as it weighs. */
  take(sandbox: string, kind: Kind, weight = 1): number {
    const { burst, perSecond } = this.#rates[kind];
    const buckets = this.#buckets.get(sandbox) ?? new Map<Kind, Bucket>();
    this.#buckets.set(sandbox, buckets);
    const now = this.#now();
    const bucket = buckets.get(kind) ?? { left: burst, at: now };
    buckets.set(kind, bucket);
    bucket.left = Math.min(burst, bucket.left + ((now - bucket.at) / 1000) * perSecond);
    bucket.at = now;
    const needed = Math.min(burst, weight);
    if (bucket.left < needed) return Math.ceil(((needed - bucket.left) / perSecond) * 1000);
    bucket.left -= needed;
    return 0;
  }

  forget(sandbox: string): void {
    this.#buckets.delete(sandbox);
  }
}
