/**
 * Which live/<n> of a volume belongs to which folder of the machine, beyond those the base uses. It is written down in the
 * volume, so that a later life of it, or a fork, finds its changes again when the machine has other disks and toolchains.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { LIVE_SLOTS } from "./volumes.ts";

export const SLOTS_FILE = "slots.json";
const Taken = z.record(z.string(), z.int().nonnegative());

export class Slots {
  readonly #file: string;
  readonly #first: number;
  readonly #taken: Map<string, number>;
  #changed = false;

  /** `first` is the first one that the base leaves free. */
  constructor(volume: string, first: number) {
    this.#file = join(volume, SLOTS_FILE);
    this.#first = first;
    this.#taken = new Map(existsSync(this.#file) ? Object.entries(Taken.parse(JSON.parse(readFileSync(this.#file, "utf8")))) : []);
  }

  /** The folder's own, or the next one; undefined when all are taken. */
  take(path: string): string | undefined {
    const slot = this.#taken.get(path) ?? Math.max(this.#first, ...[...this.#taken.values()].map((taken) => taken + 1));
    if (slot >= LIVE_SLOTS) return undefined;
    this.#changed ||= !this.#taken.has(path);
    this.#taken.set(path, slot);
    return `@vol/live/${slot}`;
  }

  /** Before the launch, so that no change comes to lie where nobody knows whose it is. */
  keep(): void {
    if (this.#changed) writeFileSync(this.#file, JSON.stringify(Object.fromEntries(this.#taken)), { mode: 0o600 });
  }
}
