/** Pipes, sockets and devices in the places where git reads text: it would wait for a writer that never comes. */
import { type Stats, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { commonGitFolder, namedGitFolder } from "./git-paths.ts";

const OF_TREE = [".gitignore", ".gitattributes"];
const OF_REPOSITORY = [
  "HEAD",
  "index",
  "config",
  "config.worktree",
  "commondir",
  "packed-refs",
  "shallow",
  "info/exclude",
  "info/attributes",
  "info/sparse-checkout",
  "objects/info/alternates",
];

/** The first one that git would meet in a folder's repository; files of rules further down it meets all the same. */
export async function specialForGit(folder: string): Promise<string | undefined> {
  const top = topOf(folder);
  if (top === undefined) return undefined;
  const own = (await namedGitFolder(top)) ?? join(top, ".git");
  const shared = await commonGitFolder(own);
  const places = [
    ...[...new Set([folder, top])].flatMap((at) => OF_TREE.map((name) => join(at, name))),
    ...[own, shared].flatMap((at) => (at === undefined ? [] : OF_REPOSITORY.map((name) => join(at, name)))),
  ];
  return places.find((path) => isSpecial(found(path)));
}

/** The nearest folder with a `.git`, as git looks for it. */
function topOf(folder: string): string | undefined {
  for (let at = folder; ; at = dirname(at)) {
    if (found(join(at, ".git")) !== undefined) return at;
    if (at === dirname(at)) return undefined;
  }
}

function isSpecial(stats: Stats | undefined): boolean {
  return stats !== undefined && !stats.isFile() && !stats.isDirectory();
}

function found(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    // What can't be looked at, git can't open either.
    return undefined;
  }
}
