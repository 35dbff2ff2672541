import { readlinkSync, realpathSync } from "node:fs";
import { basename, dirname, join } from "node:path";

/** Where a path leads, with links followed as far as it exists: the rest may come later. */
export function realPlace(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    // Not there, or closed to this user.
    const parent = dirname(path);
    return parent === path ? path : join(realPlace(parent), basename(path));
  }
}

/** The links among a folder and those above it. */
export function linksTo(path: string): string[] {
  const above = path === "/" ? [] : linksTo(dirname(path));
  try {
    readlinkSync(path);
    return [...above, path];
  } catch {
    // No link, not there, or closed to this user.
    return above;
  }
}
