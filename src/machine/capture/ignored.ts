/** Which folders of a project are shared live with reality instead of being captured. */
import { existsSync, lstatSync, realpathSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { CellHost } from "../../base/host/cell-host.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { LiveFolder } from "../../base/schema/sandbox.ts";
import { git } from "./git.ts";
import { type FolderSize, measure } from "./measure.ts";
import { isWithin } from "./project.ts";

export interface LiveChosen {
  readonly live: readonly LiveFolder[];
  /** What could not be told, a sentence each. */
  readonly notes: readonly string[];
}

export interface LiveChoice {
  /** Relative to the project. */
  readonly configured: readonly string[];
  readonly excluded: readonly string[];
  readonly limitBytes: number;
}

/** Folders the config names, then large git-ignored ones, then the largest ones if the rest is still over the limit. */
export async function chooseLive(host: CellHost, project: string, choice: LiveChoice): Promise<LiveChosen> {
  const left = new Set(choice.excluded.map((path) => resolve(project, path)));
  const isLeft = (path: string): boolean => [...left].some((folder) => isWithin(path, folder));
  const named = choice.configured
    .map((path) => join(project, path))
    .filter((path) => isWithin(path, project) && path !== project && isFolder(path) && realpathSync(path) === path && !isLeft(path));
  const live = describe(await measure(host, named, LIMITS.liveFolderEntries * 10), "ignored");
  const notes: string[] = [];
  const ignored = (await ignoredFolders(project, notes)).filter(
    (path) => !isLeft(path) && !live.some((folder) => isWithin(path, folder.path)),
  );
  const sizes = await measure(host, ignored, LIMITS.liveFolderEntries * 10);
  const large = sizes
    .filter((size) => size.entries > LIMITS.liveFolderEntries || size.bytes > LIMITS.liveFolderBytes)
    .toSorted((one, other) => weight(other) - weight(one))
    .slice(0, Math.max(0, LIMITS.maxLiveFolders - live.length));
  live.push(...describe(large, "ignored"));
  live.push(...describe(await largest(host, project, live, left, choice.limitBytes), "large"));
  return { live, notes };
}

/** How much it would cost to capture: a file costs about as much as 16 KiB. */
function weight(size: FolderSize): number {
  return size.bytes + size.entries * 16_384;
}

function describe(sizes: readonly FolderSize[], reason: LiveFolder["reason"]): LiveFolder[] {
  return sizes.map(({ path, entries, bytes }) => ({ path, reason, entries, bytes }));
}

function isFolder(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

/** Absolute paths of the outermost git-ignored folders; none without git, or where git can't tell. */
async function ignoredFolders(project: string, notes: string[]): Promise<string[]> {
  if (!existsSync(join(project, ".git"))) return [];
  const listed = await git(project, ["ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z"]);
  if (listed.code !== 0) {
    const why = listed.stderr.split("\n").at(-1) || "git did not end";
    notes.push(`What git ignores in ${project} is captured like the rest, because git can't tell what that is: ${why}.`);
    return [];
  }
  return listed.stdout
    .toString()
    .split("\0")
    .filter((path) => path.endsWith("/") && !path.startsWith("../") && !path.includes("\ufffd"))
    .map((path) => join(project, path.slice(0, -1)))
    .filter((path) => path !== project && isFolder(path));
}

/** The folders to leave out of the capture so that the rest fits: the smallest that suffice, at most a handful. */
async function largest(
  host: CellHost,
  project: string,
  live: readonly LiveFolder[],
  left: ReadonlySet<string>,
  limitBytes: number,
): Promise<FolderSize[]> {
  const chosen: FolderSize[] = [];
  const [whole] = await measure(host, [project]);
  const outside = (
    await measure(
      host,
      [...left].filter((path) => isFolder(path)),
    )
  ).reduce((sum, size) => sum + size.bytes, 0);
  const sharedLive = (
    await measure(
      host,
      live.map((folder) => folder.path),
    )
  ).reduce((sum, size) => sum + size.bytes, 0);
  let excess = (whole?.bytes ?? 0) - outside - sharedLive - limitBytes;
  while (excess > 0 && live.length + chosen.length < LIMITS.maxLiveFolders) {
    const avoid = new Set([...left, ...live.map((folder) => folder.path), ...chosen.map((folder) => folder.path)]);
    const found = await largestIn(host, project, avoid, excess);
    if (found === undefined) break;
    chosen.push(found);
    excess -= found.bytes;
  }
  return chosen;
}

/** The deepest folder that is large enough by itself; otherwise the largest one. `.git` is never shared. */
async function largestIn(host: CellHost, folder: string, avoid: ReadonlySet<string>, excess: number): Promise<FolderSize | undefined> {
  const entries = await readdir(folder, { withFileTypes: true });
  const folders = entries
    .filter((entry) => entry.isDirectory() && entry.name !== ".git" && !entry.name.includes("\ufffd"))
    .map((entry) => join(folder, entry.name));
  const sizes = (
    await measure(
      host,
      folders.filter((path) => !avoid.has(path)),
    )
  ).toSorted((one, other) => other.bytes - one.bytes);
  const biggest = sizes[0];
  if (biggest === undefined || biggest.bytes === 0) return undefined;
  if (biggest.bytes < excess) return biggest;
  const deeper = await largestIn(host, biggest.path, avoid, excess);
  return deeper !== undefined && deeper.bytes >= excess ? deeper : biggest;
}
