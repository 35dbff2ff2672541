/** What a sandbox changed in its copy of the project, found without the native helper and without following a link. */
import { constants, type Stats } from "node:fs";
import { open, readdir, readlink, stat, type FileHandle } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { FileType } from "../../../base/schema/files.ts";
import { BLOBS, type ContentLimits, type Gather, type GatheredChange, type GatheredSide, type GitMode } from "../gather.ts";
import { compareTrees, type Difference } from "./compare.ts";
import { isGone, statusOf, within } from "./trees.ts";

const GIT = /^\.git$/i;

export const gatherCopies: Gather = async (sides, folder, contents) => {
  const [old] = sides.old;
  if (old === undefined) return { changes: [], kept: [], blobs: null, skipped: 0, more: false };
  const found = await compareTrees(old, sides.new, {
    content: true,
    since: await completedAt(sides.new),
    leaveOut: (_path, name) => GIT.test(name.toString("latin1")),
  });
  const sorted = found.toSorted((one, other) => Buffer.compare(one.path, other.path));
  const blobs = contents === undefined ? null : join(folder, BLOBS);
  const writer = blobs === null || contents === undefined ? undefined : await Blobs.open(blobs, contents);
  try {
    const changes: GatheredChange[] = [];
    for (const difference of sorted) changes.push(await describe(difference, old, sides.new, writer));
    return { changes, kept: await keptFolders(sides.new, sorted), blobs, skipped: writer?.skipped ?? 0, more: false };
  } finally {
    await writer?.close();
  }
};

/** When the copy was complete: the time of the mark beside its roots. */
async function completedAt(copy: string): Promise<number> {
  try {
    return (await stat(join(dirname(dirname(copy)), "base"))).mtimeMs;
  } catch (error) {
    if (isGone(error)) return 0;
    throw error;
  }
}

async function describe({ path, status, stats }: Difference, old: string, now: string, writer: Blobs | undefined): Promise<GatheredChange> {
  const side = async (root: string): Promise<GatheredSide | null> => {
    const place = within(Buffer.from(root), path);
    const found = await statusOf(place);
    if (found === undefined) return null;
    const mode = modeOf(found);
    return { mode, mark: mode === "40000" ? 0 : ((await writer?.add(place, mode)) ?? 0) };
  };
  return {
    path,
    type: typeOf(stats),
    old: status === "added" ? null : await side(old),
    new: status === "deleted" ? null : await side(now),
  };
}

function typeOf(stats: Stats): FileType {
  if (stats.isDirectory()) return "dir";
  return stats.isSymbolicLink() ? "link" : "file";
}

function modeOf(stats: Stats): GitMode {
  if (stats.isDirectory()) return "40000";
  if (stats.isSymbolicLink()) return "120000";
  if (!stats.isFile()) return "other";
  return (stats.mode & constants.S_IXUSR) === 0 ? "100644" : "100755";
}

/** Folders above deleted paths that still hold something that is not new. */
async function keptFolders(now: string, found: readonly Difference[]): Promise<Buffer[]> {
  const added = new Set(found.filter(({ status }) => status !== "deleted").map(({ path }) => path.toString("latin1")));
  const folders = new Map<string, Buffer>();
  for (const { path, status } of found) {
    for (let end = status === "deleted" ? path.lastIndexOf(0x2f) : -1; end > 0; end = path.lastIndexOf(0x2f, end - 1))
      folders.set(path.toString("latin1", 0, end), path.subarray(0, end));
  }
  const kept: Buffer[] = [];
  for (const folder of folders.values()) {
    const names = await readdir(within(Buffer.from(now), folder), { encoding: "buffer" }).catch((error: unknown) => {
      if (isGone(error)) return [];
      throw error;
    });
    if (names.some((name) => !added.has(within(folder, name).toString("latin1")))) kept.push(folder);
  }
  return kept;
}

/** Contents as a fast-import stream. */
class Blobs {
  readonly #file: FileHandle;
  readonly #limits: ContentLimits;
  #bytes = 0;
  #mark = 0;
  skipped = 0;

  private constructor(file: FileHandle, limits: ContentLimits) {
    this.#file = file;
    this.#limits = limits;
  }

  static async open(path: string, limits: ContentLimits): Promise<Blobs> {
    return new Blobs(await open(path, "wx", 0o600), limits);
  }

  /** The number of a content; 0 for what is no file any more, too large or closed to us. */
  async add(place: Buffer, mode: GitMode): Promise<number> {
    const content = mode === "120000" ? await readlink(place, { encoding: "buffer" }) : await this.#read(place);
    if (content === undefined) {
      this.skipped += 1;
      return 0;
    }
    this.#bytes += content.length;
    this.#mark += 1;
    await this.#file.write(Buffer.concat([Buffer.from(`blob\nmark :${this.#mark}\ndata ${content.length}\n`), content, Buffer.from("\n")]));
    return this.#mark;
  }

  async #read(place: Buffer): Promise<Buffer | undefined> {
    let file;
    try {
      file = await open(place, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    } catch (error) {
      if (isGone(error) || ["ELOOP", "EACCES", "ENXIO"].includes((error as NodeJS.ErrnoException).code ?? "")) return undefined;
      throw error;
    }
    try {
      const { size } = await file.stat();
      if (size > this.#limits.fileBytes || size > this.#limits.totalBytes - this.#bytes) return undefined;
      return (await file.stat()).isFile() ? await file.readFile() : undefined;
    } finally {
      await file.close();
    }
  }

  async close(): Promise<void> {
    await this.#file.close();
  }
}
