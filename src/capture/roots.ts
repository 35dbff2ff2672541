/** Which folders of reality a base holds besides the project: git's own where they lie elsewhere, and data of services. */
import { existsSync, lstatSync } from "node:fs";
import { readFile, realpath, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { isWithin } from "./project.ts";

export interface Root {
  readonly path: string;
  readonly slot: number;
  readonly kind: "project" | "git" | "data";
}

export interface Roots {
  readonly roots: readonly Root[];
  readonly notes: readonly string[];
}

/** Folders that hold a machine's secrets: a `.git` file is content of the project and must not open them. */
const NEVER = ["/etc", "/proc", "/sys", "/dev", "/run", "/boot"];

export async function findRoots(project: string, data: readonly string[]): Promise<Roots> {
  const roots: Root[] = [{ path: project, slot: 0, kind: "project" }];
  const notes: string[] = [];
  const add = (path: string, kind: Root["kind"]): void => {
    if (!roots.some((root) => isWithin(path, root.path))) roots.push({ path, slot: roots.length, kind });
  };
  for (const folder of await gitFolders(project, notes)) add(folder, "git");
  for (const folder of data) {
    if (lstatSync(folder, { throwIfNoEntry: false })?.isDirectory() === true) add(folder, "data");
    else notes.push(`The data folder ${folder} does not exist, so it is empty inside.`);
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
