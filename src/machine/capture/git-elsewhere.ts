/**
 * Git's own folders of a project where they lie elsewhere: those of a worktree and of a submodule, whose `.git` is a file that
 * names them. That file is content of the project, which anyone may have written. So a folder counts only where its own
 * entries name this project: those lie in a place that the project does not reach.
 */
import { existsSync, lstatSync } from "node:fs";
import { stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { commonGitFolder, namedGitFolder, readPath, resolved } from "./git-paths.ts";
import { git } from "./git.ts";
import { isWithin } from "./project.ts";

/** Folders that hold a machine's secrets. */
const NEVER = ["/etc", "/proc", "/sys", "/dev", "/run", "/boot"];

/** The folders to capture besides the project; a note says why one is not. */
export async function gitFoldersElsewhere(project: string, notes: string[]): Promise<string[]> {
  const folder = await namedGitFolder(project);
  if (folder === undefined || isWithin(folder, project)) return [];
  if (!(await isRepository(folder, (await stat(project)).uid))) {
    notes.push(`The repository's data in ${folder} is not captured: it is not a git folder of the project's owner.`);
    return [];
  }
  const folders = (await asWorktree(project, folder)) ?? (await asSubmodule(project, folder));
  if (folders !== undefined) return folders;
  notes.push(
    `The repository's data in ${folder} is not captured: nothing in it names this project as its worktree or submodule. ` +
      `If it is this project's, run \`git config --file ${join(folder, "config")} core.worktree ${project}\`.`,
  );
  return [];
}

/** `<repository>/worktrees/<name>`, whose `gitdir` names the project's `.git`, and whose `commondir` is that repository. */
async function asWorktree(project: string, folder: string): Promise<string[] | undefined> {
  const shared = await commonGitFolder(folder);
  const back = await readPath(join(folder, "gitdir"));
  if (shared === undefined || dirname(folder) !== join(shared, "worktrees") || back === undefined) return undefined;
  const file = resolve(folder, back);
  if (basename(file) !== ".git" || (await resolved(dirname(file))) !== project) return undefined;
  return (await isRepository(shared, (await stat(project)).uid)) ? [shared, folder] : undefined;
}

/** A repository by itself, whose settings name the project as its worktree. */
async function asSubmodule(project: string, folder: string): Promise<string[] | undefined> {
  if (existsSync(join(folder, "commondir"))) return undefined;
  for (const name of ["config", "config.worktree"]) {
    const file = join(folder, name);
    if (lstatSync(file, { throwIfNoEntry: false })?.isFile() !== true) continue;
    const { code, stdout } = await git(project, ["config", "--file", file, "--no-includes", "--null", "--get", "core.worktree"]);
    const [back = ""] = stdout.toString().split("\0");
    if (code === 0 && back !== "" && (await resolved(resolve(folder, back))) === project) return [folder];
  }
  return undefined;
}

async function isRepository(path: string, owner: number): Promise<boolean> {
  if (NEVER.some((folder) => isWithin(path, folder)) || dirname(path) === path) return false;
  return existsSync(join(path, "HEAD")) && (await stat(path)).uid === owner;
}
