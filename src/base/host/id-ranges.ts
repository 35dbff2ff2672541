/** Ranges of ids on this machine: which belong to users, and which server has taken which for its sandboxes. */
import { mkdirSync, readdirSync, readFileSync, readlinkSync, renameSync, rmdirSync, symlinkSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { LIMITS } from "../schema/limits.ts";
import { idOfFolder } from "./state-folder.ts";

/**
 * Where servers of this machine note what they have taken: a folder for each range, with a link that has the owner's id for its name and
 * leads to the owner's state folder. Like the sandboxes, it is gone after a boot.
 *
 * A server makes the folder with its link first, and then renames it to the range: the kernel does that only where the range has no
 * folder, or an empty one. A note is taken away by its owner's name. So of servers that take or clear one range at the same time one
 * comes first, and none takes away what another has just noted.
 */
const NOTES = "/run/vivarium/taken-id-ranges";

export interface IdRangeOptions {
  /** Id of the state folder, and where it is. */
  readonly owner: string;
  readonly home: string;
  /** Whether a range belongs to no user, as far as the machine's own files tell. */
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

  /** Takes a range for this server; false where it is another server's. */
  take(range: number): boolean {
    if (!this.#options.isFree(range)) return false;
    if (this.#notes === undefined) return true;
    try {
      renameSync(this.#newNote(this.#notes), join(this.#notes, String(range)));
      return true;
    } catch (error) {
      // What clears /run may take the folder away.
      if (code(error) === "ENOENT" && prepared(this.#notes) !== undefined) return this.take(range);
      if (code(error) !== "ENOTEMPTY" && code(error) !== "EEXIST") throw error;
      return noteIn(join(this.#notes, String(range)))?.owner === this.#options.owner;
    }
  }

  /** A note of this server that is for no range yet. One that an earlier server left is as good. */
  #newNote(notes: string): string {
    const { owner, home } = this.#options;
    const folder = join(notes, `.${owner}`);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    try {
      symlinkSync(home, join(folder, owner));
    } catch (error) {
      if (code(error) !== "EEXIST") throw error;
    }
    return folder;
  }

  release(range: number): void {
    if (this.#notes !== undefined) clear(join(this.#notes, String(range)), this.#options.owner);
  }

  /** Lets go of what an earlier server of this folder took and no sandbox has, and of what folders had that are gone. */
  keepOnly(ranges: ReadonlySet<number>): void {
    if (this.#notes === undefined) return;
    const left: { readonly folder: string; readonly range: number; readonly owner: string }[] = [];
    for (const range of readdirSync(this.#notes)
      .filter((name) => /^\d+$/.test(name))
      .map(Number)) {
      const folder = join(this.#notes, String(range));
      const owner = this.#desertedBy(folder);
      if (owner !== undefined) left.push({ folder, range, owner });
      else if (!ranges.has(range)) this.release(range);
    }
    // Processes may outlive the folder of their server.
    const inUse = left.length === 0 ? undefined : firstIdsInUse();
    const first = (range: number): number => LIMITS.uidRangeStart + range * LIMITS.uidRangeSize;
    for (const { folder, range, owner } of left) if (inUse?.has(first(range)) !== true) clear(folder, owner);
  }

  /** The owner of a note whose state folder is gone. */
  #desertedBy(folder: string): string | undefined {
    const note = noteIn(folder);
    return note !== undefined && note.owner !== this.#options.owner && idOfFolder(note.home) !== note.owner ? note.owner : undefined;
  }
}

/** The first ids of all ranges that a process has. */
function firstIdsInUse(): ReadonlySet<number> {
  const found = new Set<number>();
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      for (const line of readFileSync(`/proc/${pid}/uid_map`, "utf8").split("\n")) found.add(Number(line.trim().split(/\s+/)[1]));
    } catch {
      // It ended meanwhile.
    }
  }
  return found;
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

/** Takes an owner's note away; one that is gone already, or is another owner's, stays as it is. */
function clear(folder: string, owner: string): void {
  try {
    unlinkSync(join(folder, owner));
    rmdirSync(folder);
  } catch (error) {
    // Another server has cleared it, or has taken the range again.
    if (code(error) !== "ENOENT" && code(error) !== "ENOTEMPTY") throw error;
  }
}

function noteIn(folder: string): { owner: string; home: string } | undefined {
  try {
    const [owner] = readdirSync(folder);
    return owner === undefined ? undefined : { owner, home: readlinkSync(join(folder, owner)) };
  } catch (error) {
    if (code(error) === "ENOENT") return undefined;
    throw error;
  }
}

function code(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code;
}
