/** What an ordinary user's sandbox shows of the system: folders that are overlaid one by one, because / as a whole can't be. */
import { accessSync, constants, type Dirent, readdirSync, readlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { diskMounts, type Mount } from "../../../base/host/mounts.ts";

export type UserFolder =
  | { readonly kind: "overlay" | "dir" | "file"; readonly path: string }
  | { readonly kind: "symlink"; readonly path: string; readonly target: string };

/** Top-level folders that are made anew in every sandbox. */
const MADE_TOPS = new Set(["/proc", "/sys", "/dev", "/run", "/tmp"]);
/** Those that are hidden in it, or made, unless they are links to where the mask hides them. */
const PRIVATE_TOPS = new Set(["/home", "/root", "/mnt", "/media", "/lost+found", "/boot"]);

export interface ServerSettings {
  /** The state folder. It holds the uppers, and layers that contain each other are refused. */
  readonly state: string;
  /** The kernel refuses a layer that holds a mount which the user did not make. */
  readonly mounts: readonly Mount[];
  /** What is hidden, emptied or replaced: nothing of reality is below. */
  readonly masked: readonly string[];
}

/** Where a folder can't be overlaid whole, it is made, and what lies in it is shown piece by piece. */
export function userFolders(around: ServerSettings): UserFolder[] {
  return new Pieces(around).below("/");
}

class Pieces {
  readonly #around: ServerSettings;
  readonly #mounts: ReadonlySet<string>;
  readonly #disks: ReadonlySet<string>;
  readonly #masked: ReadonlySet<string>;
  /** Folders that hold what no layer may hold. */
  readonly #broken = new Set<string>();

  constructor(around: ServerSettings) {
    this.#around = around;
    this.#masked = new Set(around.masked);
    this.#mounts = new Set(around.mounts.map(({ target }) => target));
    this.#disks = new Set(diskMounts(around.mounts).map(({ target }) => target));
    for (const path of [around.state, ...this.#mounts]) {
      for (let folder = dirname(path); !this.#broken.has(folder); folder = dirname(folder)) this.#broken.add(folder);
    }
  }

  below(folder: string): UserFolder[] {
    return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => this.#piece(entry, join(folder, entry.name)));
  }

  /** The type comes from the folder above: a mount whose server does not answer is not touched. */
  #piece(entry: Dirent, path: string): UserFolder[] {
    if (MADE_TOPS.has(path) || path === this.#around.state) return [];
    if (entry.isSymbolicLink()) return [{ kind: "symlink", path, target: readlinkSync(path) }];
    if (PRIVATE_TOPS.has(path)) return [];
    if (entry.isFile()) return dirname(path) === "/" ? [] : [{ kind: "file", path }];
    if (!entry.isDirectory()) return [];
    if (this.#mounts.has(path) && !this.#disks.has(path)) return [{ kind: "dir", path }];
    if (!isEnterable(path)) return [];
    if (!this.#broken.has(path) || this.#masked.has(path)) return [{ kind: "overlay", path }];
    return [{ kind: "dir", path }, ...this.below(path)];
  }
}

function isEnterable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK | constants.X_OK);
    return true;
  } catch {
    // Not this user's to see, inside as outside.
    return false;
  }
}
