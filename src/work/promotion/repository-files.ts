/**
 * Folders that git takes for a repository of their own, whatever their name: git that is run below one reads its config, which may name
 * programs. Git wants HEAD and either `objects` and `refs`, or a `commondir` that says where these are.
 */
import { lstatSync } from "node:fs";
import { join } from "node:path";
import type { MergedChange } from "../../machine/merge/three-way.ts";

/** What git reads in a repository, in lower case. */
const SETTINGS = ["head", "config", "config.worktree", "commondir", "gitdir", "hooks", "info", "packed-refs"];
const DATA = ["objects", "refs"];
const PARTS = new Set([...SETTINGS, ...DATA]);

interface Part {
  readonly path: Buffer;
  readonly name: string;
}

/** Changed files of such folders, as these will be with what the project holds. Of objects and refs alone, the first. */
export function repositoryFiles(changes: readonly MergedChange[], project: string): Buffer[] {
  const folders = Map.groupBy(
    changes.flatMap((change) => (change.new === null ? [] : partsIn(change.path))),
    ({ folder }) => folder,
  );
  return [...folders].flatMap(([folder, parts]) => (isRepository(folder, parts, project) ? pathsOf(parts) : []));
}

/** Each place in a path that may be the part of a repository. */
function partsIn(path: Buffer): (Part & { readonly folder: string })[] {
  const names = path.toString("latin1").split("/");
  return names.flatMap((name, index) => {
    const lower = name.toLowerCase();
    return PARTS.has(lower) ? [{ path, name: lower, folder: names.slice(0, index).join("/") }] : [];
  });
}

function isRepository(folder: string, parts: readonly Part[], project: string): boolean {
  const made = new Set(parts.map(({ name }) => name));
  const has = (name: string): boolean => made.has(name.toLowerCase()) || isThere(join(project, "/"), folder, name);
  return has("HEAD") && (has("commondir") || (has("objects") && has("refs")));
}

function isThere(project: string, folder: string, name: string): boolean {
  const path = Buffer.from(folder === "" ? name : `${folder}/${name}`, "latin1");
  try {
    return lstatSync(Buffer.concat([Buffer.from(project), path]), { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    // A name that the file system can't hold, or below a file, is not there.
    if (["ENAMETOOLONG", "ENOTDIR", "ELOOP"].includes((error as NodeJS.ErrnoException).code ?? "")) return false;
    throw error;
  }
}

function pathsOf(parts: readonly Part[]): Buffer[] {
  const settings = parts.filter(({ name }) => !DATA.includes(name));
  return (settings.length > 0 ? settings : parts.slice(0, 1)).map(({ path }) => path);
}
