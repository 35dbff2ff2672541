/** Which folder of the machine each live/<n> slot of a volume serves. What is in a slot was made in that folder, and belongs nowhere else. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { readSlots, writeSlots } from "../../volumes/slots.ts";
import { LIVE_SLOTS } from "../../volumes/volumes.ts";

const ALL = Array.from({ length: LIVE_SLOTS }, (_, slot) => slot);

export class Slots {
  readonly #volume: string;
  readonly #slots: Map<string, number>;
  readonly #taken: Set<number>;
  /** A volume without a list was never launched, or before there were lists: there the slots have the order in which they are asked for. */
  readonly #isListed: boolean;
  #isChanged = false;

  /** `used` are those that the base gave to folders of the project. */
  constructor(volume: string, used: readonly number[]) {
    const known = readSlots(volume);
    this.#volume = volume;
    this.#slots = known ?? new Map();
    this.#taken = new Set([...used, ...this.#slots.values()]);
    this.#isListed = known !== undefined;
  }

  /** The slot of a folder, its own for the life of the volume; undefined when all are given away. */
  take(path: string): string | undefined {
    const slot = this.#slots.get(path) ?? this.#give(path);
    return slot === undefined ? undefined : `@vol/live/${slot}`;
  }

  /** Before anything is written into them. A machine with one disk has none to give, and nothing to write down. */
  save(): void {
    if (this.#isChanged) writeSlots(this.#volume, this.#slots);
  }

  #give(path: string): number | undefined {
    const slot = ALL.find((each) => !this.#taken.has(each) && (!this.#isListed || this.#isEmpty(each)));
    if (slot === undefined) return undefined;
    this.#slots.set(path, slot);
    this.#taken.add(slot);
    this.#isChanged = true;
    return slot;
  }

  #isEmpty(slot: number): boolean {
    try {
      return readdirSync(join(this.#volume, "live", String(slot), "upper")).length === 0;
    } catch {
      // A folder that its sandbox closed to all users is in use.
      return false;
    }
  }
}
