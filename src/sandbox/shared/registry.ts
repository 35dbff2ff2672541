/** Names, id ranges and bases of sandboxes that exist or are being made, so that two never share one. */
import { VivError } from "../../base/schema/errors.ts";
import { newId } from "../../base/schema/ids.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { SandboxRow } from "../../base/store/rows.ts";
import { inventName } from "./names.ts";

export interface Reservation {
  readonly id: string;
  readonly name: string;
  readonly range: number;
}

/** Id ranges of the machine, which others take from, too. */
export interface MachineRanges {
  /** False where it is another server's. */
  take(range: number): boolean;
  release(range: number): void;
  keepOnly(ranges: ReadonlySet<number>): void;
}

/** The last range whose ids exist. */
const LAST_RANGE = Math.floor((2 ** 32 - LIMITS.uidRangeStart) / LIMITS.uidRangeSize) - 2;
/** Ranges that stay this server's when no sandbox has them: a create that finds a spare takes one and gives it back at once. */
const KEPT_RANGES = 4;

export class Registry {
  readonly #names = new Set<string>();
  readonly #ranges = new Set<number>();
  /** Taken from the machine, and free. */
  readonly #kept = new Set<number>();
  readonly #bases = new Map<string, number>();
  readonly #machine: MachineRanges;

  constructor(machine: MachineRanges) {
    this.#machine = machine;
  }

  /** Takes the names and ranges of what is in the store. Sandboxes without a row have ranges, too, where `unknown` says so. */
  register(rows: readonly SandboxRow[], unknown = false): void {
    for (const row of rows) {
      this.#names.add(row.name);
      this.#ranges.add(row.range);
      this.#machine.take(row.range);
    }
    if (!unknown) this.#machine.keepOnly(this.#ranges);
  }

  reserve(name?: string): Reservation {
    if (name !== undefined && this.#names.has(name))
      throw new VivError("name_taken", `There is a sandbox called ${name} already.`, {
        remedy: `Choose another name, or throw that one away: \`viv rm ${name}\`.`,
      });
    const reservation = { id: newId("sandbox"), name: name ?? inventName((taken) => this.#names.has(taken)), range: this.#takeRange() };
    this.#names.add(reservation.name);
    return reservation;
  }

  #takeRange(): number {
    for (const range of this.#kept) {
      this.#kept.delete(range);
      this.#ranges.add(range);
      return range;
    }
    for (let range = 0; range <= LAST_RANGE; range += 1) {
      if (this.#ranges.has(range) || !this.#machine.take(range)) continue;
      this.#ranges.add(range);
      return range;
    }
    throw new VivError("no_capacity", "Every range of ids of this machine is taken.");
  }

  /** One reservation of two: the id and the range of processes that were launched ahead, under the name that a caller was given. */
  join(named: Reservation, ahead: Reservation): Reservation {
    this.#names.delete(ahead.name);
    this.#releaseRange(named.range);
    return { ...ahead, name: named.name };
  }

  release({ name, range }: Pick<Reservation, "name" | "range">): void {
    this.#names.delete(name);
    this.#releaseRange(range);
  }

  #releaseRange(range: number): void {
    if (this.#ranges.delete(range) && this.#kept.size < KEPT_RANGES) this.#kept.add(range);
    else this.#machine.release(range);
  }

  /** Gives the machine back what no sandbox has. */
  close(): void {
    for (const range of this.#kept) this.#machine.release(range);
    this.#kept.clear();
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
