/**
 * The state folder of a server, known by the id in it and never by its path. The id names what the server has outside of
 * the folder: groups, ranges of ids, mounts. A path that leads elsewhere now is another server's, and nothing there may be touched.
 */
import { randomBytes } from "node:crypto";
import { closeSync, existsSync, fstatSync, openSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export class StateFolder {
  readonly id: string;
  readonly #file: string;
  /** While it is open, no other file gets the inode of this one. */
  readonly #descriptor: number;

  private constructor(id: string, file: string) {
    this.id = id;
    this.#file = file;
    this.#descriptor = openSync(file, "r");
  }

  /** Called with the folder's lock held. */
  static open(home: string): StateFolder {
    const file = join(home, "id");
    const known = knownId(home, file);
    if (known !== undefined) return new StateFolder(known, file);
    const id = existsSync(file) || !existsSync(join(home, "vivarium.db")) ? newId() : idOfPath(home);
    writeFileSync(file, `${id}\n${placeOf(home)}\n`, { mode: 0o600 });
    return new StateFolder(id, file);
  }

  /** Whether the path still leads to it. A disk that does not answer says nothing about that. */
  isThere(): boolean {
    try {
      const now = statSync(this.#file, { throwIfNoEntry: false });
      const own = fstatSync(this.#descriptor);
      return now !== undefined && now.ino === own.ino && now.dev === own.dev;
    } catch (error) {
      return (error as NodeJS.ErrnoException).code !== "ENOTDIR";
    }
  }

  close(): void {
    closeSync(this.#descriptor);
  }
}

/** The id that a state folder has now; undefined where there is none. */
export function idOfFolder(home: string): string | undefined {
  const file = join(home, "id");
  return existsSync(file) ? readFileSync(file, "utf8").split("\n")[0] : undefined;
}

/** A copy of a folder brings the id along, but what the id names belongs to the original. */
function knownId(home: string, file: string): string | undefined {
  if (!existsSync(file)) return undefined;
  const [id = "", place] = readFileSync(file, "utf8").split("\n");
  return /^[a-z0-9]{1,32}$/.test(id) && place === placeOf(home) ? id : undefined;
}

function placeOf(home: string): string {
  const { dev, ino } = statSync(home, { bigint: true });
  return `${dev}:${ino}`;
}

function newId(): string {
  return randomBytes(8).toString("hex");
}

/** In folders from before there were ids, running sandboxes have groups that are named by the path. */
function idOfPath(home: string): string {
  let hash = 0;
  for (const character of home) hash = (hash * 31 + (character.codePointAt(0) ?? 0)) >>> 0;
  return hash.toString(36);
}
