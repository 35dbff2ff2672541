/** Ranges of ids on this machine: which belong to users, and which server has taken which for its sandboxes. */
import { mkdirSync, readdirSync, readlinkSync, symlinkSync, unlinkSync } from "node:fs";
import { join } from "node:path";

/** Where servers of this machine note what they have taken. Like the sandboxes, it is gone after a boot. */
const NOTES = "/run/vivarium/id-ranges";

export interface IdRangeOptions {
  /** Id of the state folder. */
  readonly owner: string;
  /** Whether a range belongs to nobody else, as far as the machine's own files tell. */
  readonly isFree: (range: number) => boolean;
  /** Whether other servers could give the same ids away: an ordinary user has only one to give. */
  readonly shared: boolean;
  readonly notes?: string;
}

export class IdRanges {
  readonly #options: IdRangeOptions;
  /** Undefined where nothing can be noted. */
  readonly #notes: string | undefined;

  constructor(options: IdRangeOptions) {
    this.#options = options;
    this.#notes = options.shared ? prepared(options.notes ?? NOTES) : undefined;
  }

  /** Takes a range for this server; false where it is somebody else's. */
  take(range: number): boolean {
    if (!this.#options.isFree(range)) return false;
    if (this.#notes === undefined) return true;
    const note = join(this.#notes, String(range));
    try {
      symlinkSync(this.#options.owner, note);
      return true;
    } catch (error) {
      if (code(error) !== "EEXIST") throw error;
      return ownerOf(note) === this.#options.owner;
    }
  }

  release(range: number): void {
    if (this.#notes === undefined) return;
    const note = join(this.#notes, String(range));
    if (ownerOf(note) === this.#options.owner) unlinkSync(note);
  }

  /** Lets go of what an earlier server of this folder took and no sandbox has. */
  keepOnly(ranges: ReadonlySet<number>): void {
    if (this.#notes === undefined) return;
    for (const name of readdirSync(this.#notes)) if (!ranges.has(Number(name))) this.release(Number(name));
  }
}

function prepared(folder: string): string | undefined {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    return folder;
  } catch (error) {
    if (code(error) === "EROFS" || code(error) === "EACCES") return undefined;
    throw error;
  }
}

function ownerOf(note: string): string | undefined {
  try {
    return readlinkSync(note);
  } catch (error) {
    if (code(error) === "ENOENT") return undefined;
    throw error;
  }
}

function code(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code;
}
