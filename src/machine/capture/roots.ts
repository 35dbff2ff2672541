/** Which folders of reality a base holds besides the project: git's own where they lie elsewhere, and data of services. */
import { lstatSync } from "node:fs";
import type { DataFolder } from "./capture.ts";
import { gitFoldersElsewhere } from "./git-elsewhere.ts";
import { isWithin } from "./project.ts";

export interface Root {
  /** Where it is inside. */
  readonly path: string;
  /** The folder that is captured. */
  readonly source: string;
  readonly slot: number;
  /** taken: a copy made for this, which stands still. */
  readonly kind: "project" | "git" | "data" | "taken";
}

export interface Roots {
  readonly roots: readonly Root[];
  readonly notes: readonly string[];
}

export async function findRoots(project: string, data: readonly DataFolder[]): Promise<Roots> {
  const roots: Root[] = [{ path: project, source: project, slot: 0, kind: "project" }];
  const notes = [...new Set(data.flatMap(({ note }) => note ?? []))];
  const add = (path: string, kind: Root["kind"], source = path): void => void roots.push({ path, source, slot: roots.length, kind });
  const isCovered = (path: string): boolean => roots.some((root) => isWithin(path, root.path));
  for (const folder of await gitFoldersElsewhere(project, notes)) if (!isCovered(folder)) add(folder, "git");
  // A folder is mounted before what lies in it.
  for (const { path, source } of data.toSorted((one, other) => one.path.length - other.path.length)) {
    if (roots.some((root) => root.path === path)) continue;
    if (source !== undefined) add(path, "taken", source);
    else if (lstatSync(path, { throwIfNoEntry: false })?.isDirectory() !== true)
      notes.push(`The data folder ${path} does not exist, so it is empty inside.`);
    else if (!isCovered(path)) add(path, "data");
  }
  return { roots, notes };
}
