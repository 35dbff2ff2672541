/** The folders of the system that an ordinary user's sandbox overlays, one by one, because / as a whole can't be. */
import { accessSync, constants, lstatSync, readdirSync, readlinkSync } from "node:fs";
import { join } from "node:path";

export type UserFolder =
  | { readonly kind: "overlay"; readonly path: string }
  | { readonly kind: "dir"; readonly path: string }
  | { readonly kind: "symlink"; readonly path: string; readonly target: string };

/** Top-level folders that are made anew in every sandbox or hidden in it. */
const PRIVATE_TOPS = new Set(["proc", "sys", "dev", "run", "tmp", "home", "root", "mnt", "media", "lost+found", "boot"]);

/**
 * `around` is a folder that no overlay may contain: the state folder holds their uppers, and layers that contain each
 * other are refused. The folders that lead to it are made, and what lies beside them is overlaid.
 */
export function userFolders(around: string): UserFolder[] {
  return below("/", around).filter(({ path }) => !PRIVATE_TOPS.has(path.slice(1)));
}

function below(folder: string, around: string): UserFolder[] {
  return readdirSync(folder).flatMap((name): UserFolder[] => {
    const path = join(folder, name);
    const stats = lstatSync(path);
    if (stats.isSymbolicLink()) return [{ kind: "symlink", path, target: readlinkSync(path) }];
    if (!stats.isDirectory() || path === around || !enterable(path)) return [];
    if (PRIVATE_TOPS.has(path.slice(1)) || !around.startsWith(`${path}/`)) return [{ kind: "overlay", path }];
    return [{ kind: "dir", path }, ...below(path, around)];
  });
}

function enterable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK | constants.X_OK);
    return true;
  } catch {
    // Not this user's to see, inside as outside.
    return false;
  }
}
