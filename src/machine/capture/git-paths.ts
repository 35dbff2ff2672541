/** Where the `.git` file of a worktree or a submodule leads: files that hold a path and nothing else. */
import { lstatSync } from "node:fs";
import { realpath } from "node:fs/promises";
import { join, resolve } from "node:path";
import { readRegular } from "../../base/host/regular-file.ts";

const LONGEST_PATH_BYTES = 16 * 1024;

/** The folder that the `.git` file of a folder names, resolved; undefined where there is no such file. */
export async function namedGitFolder(folder: string): Promise<string | undefined> {
  const file = join(folder, ".git");
  if (lstatSync(file, { throwIfNoEntry: false })?.isFile() !== true) return undefined;
  const named = /^gitdir: (.+)$/s.exec((await readPath(file)) ?? "")?.[1];
  return named === undefined ? undefined : resolved(resolve(folder, named));
}

/** The folder that a git folder shares with others, resolved; undefined where it shares none. */
export async function commonGitFolder(folder: string): Promise<string | undefined> {
  const common = await readPath(join(folder, "commondir"));
  return common === undefined ? undefined : resolved(resolve(folder, common));
}

export async function readPath(file: string): Promise<string | undefined> {
  const text = (await readRegular(file, LONGEST_PATH_BYTES))?.toString();
  return text?.replace(/[\r\n]+$/, "") || undefined;
}

export async function resolved(path: string): Promise<string | undefined> {
  return realpath(path).catch(() => undefined);
}
