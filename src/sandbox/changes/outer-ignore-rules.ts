/** Ignore rules from outside a project's tree: of folders above it, of the repository beside it, and of its owner for all. */
import { lstat, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { git, ignoreFileOf } from "../../machine/capture/git.ts";
import { readRegular } from "../../base/host/regular-file.ts";
import type { OuterRules } from "../../machine/merge/ignore.ts";

const MOST_BYTES = 1024 ** 2;

const NONE: OuterRules = { prefix: "", above: [], excludes: Buffer.alloc(0) };

/** They lie in reality, where no sandbox writes. */
export async function outerRules(project: string): Promise<OuterRules> {
  const owner = await stat(project).catch(() => undefined);
  if (owner === undefined) return NONE;
  const owned = { ...NONE, excludes: await read(ignoreFileOf(owner.uid)) };
  const own = await lstat(join(project, ".git")).catch(() => undefined);
  // Then the base has all the rest.
  if (own?.isDirectory() === true) return owned;
  const { code, stdout } = await git(project, ["rev-parse", "--show-cdup", "--show-prefix", "--git-path", "info/exclude"]);
  if (code !== 0) return owned;
  const [up = "", prefix = "", exclude = ""] = stdout.toString().split("\n");
  // A repository that ignores the whole project, such as one of dotfiles, is not the project's.
  if (prefix !== "" && (await git(project, ["check-ignore", "-q", "--no-index", "--", project])).code === 0) return owned;
  const folders = prefix.split("/").slice(0, -1);
  const places = folders.map((_, depth) => join(resolve(project, up), ...folders.slice(0, depth), ".gitignore"));
  const parts = [owned.excludes, await read(resolve(project, exclude))];
  return {
    prefix,
    above: await Promise.all(places.map(read)),
    excludes: Buffer.concat(parts.flatMap((part) => [part, Buffer.from("\n")])),
  };
}

/** As git reads them: a link is no file of rules, and what is not there says nothing. */
async function read(path: string): Promise<Buffer> {
  return (await readRegular(path, MOST_BYTES)) ?? Buffer.alloc(0);
}
