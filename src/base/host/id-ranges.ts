/** Ranges of ids on this machine: which belong to users, and which server has taken which for its sandboxes. */
import { mkdirSync, readdirSync, readFileSync, readlinkSync, symlinkSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { LIMITS } from "../schema/limits.ts";
import { idOfFolder } from "./state-folder.ts";

/** Where servers of this machine note what they have taken. Like the sandboxes, it is gone after a boot. */
const NOTES = "/run/vivarium/id-ranges";

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
    const note = join(this.#notes, String(range));
    try {
      symlinkSync(`${this.#options.owner}:${this.#options.home}`, note);
      return true;
    } catch (error) {
      // What clears /run may take the folder away.
      if (code(error) === "ENOENT" && prepared(this.#notes) !== undefined) return this.take(range);
      if (code(error) !== "EEXIST") throw error;
      return ownerOf(note) === this.#options.owner;
    }
  }

  release(range: number): void {
    if (this.#notes === undefined) return;
    const note = join(this.#notes, String(range));
    if (ownerOf(note) === this.#options.owner) unlinkSync(note);
  }

  /** Lets go of what an earlier server of this folder took and no sandbox has, and of what folders had that are gone. */
  keepOnly(ranges: ReadonlySet<number>): void {
    if (this.#notes === undefined) return;
    const left: number[] = [];
    for (const range of readdirSync(this.#notes).map(Number)) {
      if (this.#isDeserted(range)) left.push(range);
      else if (!ranges.has(range)) this.release(range);
    }
    // Processes may outlive the folder of their server.
    const inUse = left.length === 0 ? undefined : firstIdsInUse();
    const first = (range: number): number => LIMITS.uidRangeStart + range * LIMITS.uidRangeSize;
    for (const range of left) if (inUse?.has(first(range)) !== true) unlinkSync(join(this.#notes, String(range)));
  }

  #isDeserted(range: number): boolean {
    const note = readNote(join(this.#notes ?? "", String(range)));
    return note !== undefined && note.owner !== this.#options.owner && idOfFolder(note.home) !== note.owner;
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

function ownerOf(note: string): string | undefined {
  return readNote(note)?.owner;
}

function readNote(note: string): { owner: string; home: string } | undefined {
  try {
    const [owner = "", ...home] = readlinkSync(note).split(":");
    return { owner, home: home.join(":") };
  } catch (error) {
    if (code(error) === "ENOENT") return undefined;
    throw error;
  }
}

function code(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code;
}
