/**
 * Folders in which volumes are made when several are made at once. The kernel holds the lock of the folder that a subvolume is
 * made in until all of it is on the disk; those that are made in different folders share that wait. Each is then renamed into
 * its place. What a crash leaves here is complete: it is put in its place, and stays there if a row knows it.
 */
import { existsSync } from "node:fs";
import { mkdir, rename } from "node:fs/promises";
import { join } from "node:path";
import { namesIn } from "../../../base/host/names-in.ts";
import { asideName, TRASH } from "../names.ts";

const PLACES = Array.from({ length: 16 }, (_, place) => String(place));

export class Nursery {
  readonly #folder: string;
  #next = 0;

  constructor(pool: string) {
    this.#folder = join(pool, "nursery");
  }

  async prepare(): Promise<void> {
    for (const place of PLACES) await mkdir(join(this.#folder, place), { recursive: true, mode: 0o700 });
  }

  /** Where the next volume can be made beside others. */
  place(): string {
    const place = PLACES[this.#next] ?? "0";
    this.#next = (this.#next + 1) % PLACES.length;
    return join(this.#folder, place);
  }

  /** Puts what is left over among the volumes, whose reconcile judges it; `busy` are those that are being made. */
  async empty(volumes: string, busy: ReadonlySet<string>): Promise<void> {
    for (const place of PLACES) {
      for (const name of namesIn(join(this.#folder, place))) {
        if (busy.has(name)) continue;
        const target = join(volumes, existsSync(join(volumes, name)) ? asideName(TRASH) : name);
        await rename(join(this.#folder, place, name), target);
      }
    }
  }
}
