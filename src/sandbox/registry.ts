/** Names, id ranges and bases of sandboxes that exist or are being made, so that two never share one. */
import { VivError } from "../schema/errors.ts";
import { newId } from "../schema/ids.ts";
import type { SandboxRow } from "../store/store.ts";
import { inventName } from "./names.ts";

export interface Reservation {
  readonly id: string;
  readonly name: string;
  readonly range: number;
}

export class Registry {
  readonly #names = new Set<string>();
  readonly #ranges = new Set<number>();
  readonly #bases = new Map<string, number>();
  readonly #rangeIsFree: (range: number) => boolean;

  /** `rangeIsFree` knows the id ranges that belong to others on this machine. */
  constructor(rangeIsFree: (range: number) => boolean) {
    this.#rangeIsFree = rangeIsFree;
  }

  /** Takes the names and ranges of what is in the store. */
  register(rows: readonly SandboxRow[]): void {
    for (const row of rows) {
      this.#names.add(row.name);
      this.#ranges.add(row.range);
    }
  }

  reserve(name?: string): Reservation {
    if (name !== undefined && this.#names.has(name)) throw new VivError("name_taken", `There is a sandbox called ${name} already.`);
    let range = 0;
    while (this.#ranges.has(range) || !this.#rangeIsFree(range)) range += 1;
    const reservation = { id: newId("sandbox"), name: name ?? inventName((taken) => this.#names.has(taken)), range };
    this.#names.add(reservation.name);
    this.#ranges.add(range);
    return reservation;
  }

  release({ name, range }: Pick<Reservation, "name" | "range">): void {
    this.#names.delete(name);
    this.#ranges.delete(range);
  }

  get count(): number {
    return this.#ranges.size;
  }

  /** Whether something that is being made starts from this base, besides what the caller holds itself. */
  uses(base: string, own = 0): boolean {
    return (this.#bases.get(base) ?? 0) > own;
  }

  /** Keeps a base from being forgotten; call the result to let it go. */
  hold(base: string): () => void {
    this.#bases.set(base, (this.#bases.get(base) ?? 0) + 1);
    return () => {
      const left = (this.#bases.get(base) ?? 1) - 1;
      if (left === 0) this.#bases.delete(base);
      else this.#bases.set(base, left);
    };
  }
}
