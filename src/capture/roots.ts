/** Which folders of reality a base holds besides the project: git's own where they lie elsewhere, and data of services. */
import { existsSync, lstatSync } from "node:fs";
import { readFile, realpath, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import type { DataFolder } from "./capture.ts";
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

/** Folders that hold a machine's secrets: a `.git` file is content of the project and must not open them. */
const NEVER = ["/etc", "/proc", "/sys", "/dev", "/run", "/boot"];

export async function findRoots(project: string, data: readonly DataFolder[]): Promise<Roots> {
  const roots: Root[] = [{ path: project, source: project, slot: 0, kind: "project" }];
  const notes = [...new Set(data.flatMap(({ note }) => note ?? []))];
  const add = (path: string, kind: Root["kind"], source = path): void => void roots.push({ path, source, slot: roots.length, kind });
  const isCovered = (path: string): boolean => roots.some((root) => isWithin(path, root.path));
  for (const folder of await gitFolders(project, notes)) if (!isCovered(folder)) add(folder, "git");
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

/** A worktree's and a submodule's `.git` is a file that names a folder elsewhere, which may name another one. */
async function gitFolders(project: string, notes: string[]): Promise<string[]> {
  const file = join(project, ".git");
  if (lstatSync(file, { throwIfNoEntry: false })?.isFile() !== true) return [];
  const named = /^gitdir: (.+)$/m.exec(await readFile(file, "utf8"))?.[1];
  const folder = named === undefined ? undefined : await resolved(resolve(project, named));
  if (folder === undefined) return [];
  const common = join(folder, "commondir");
  const shared = existsSync(common) ? await resolved(resolve(folder, (await readFile(common, "utf8")).trim())) : undefined;
  const folders = [...new Set([shared, folder])].filter((path) => path !== undefined);
  const owner = (await stat(project)).uid;
  for (const path of folders) {
    if (await isRepository(path, owner)) continue;
    notes.push(`The repository's data in ${path} is not captured: it is not a git folder of the project's owner.`);
    return [];
  }
  return folders;
}

async function isRepository(path: string, owner: number): Promise<boolean> {
  if (NEVER.some((folder) => isWithin(path, folder)) || dirname(path) === path) return false;
  return existsSync(join(path, "HEAD")) && (await stat(path)).uid === owner;
}

async function resolved(path: string): Promise<string | undefined> {
  return realpath(path).catch(() => undefined);
}
