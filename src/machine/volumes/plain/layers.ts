/**
 * Bases on plain storage: a base is a layer with what changed, and the list of layers below it. Layers are never
 * written after they are made, so files can be shared between them by hard links.
 */
import { existsSync } from "node:fs";
import { chmod, chown, link, lstat, mkdir, readdir, readFile, rename, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** More layers than this are merged: every one costs each lookup inside. */
export const MOST_LAYERS = 8;

/** Written into a base, a volume and a snapshot: ids of the layers under it, topmost first. */
const LIST = "layers.json";

export async function readLayers(folder: string): Promise<string[]> {
  const list: unknown = JSON.parse(await readFile(join(folder, LIST), "utf8"));
  return Array.isArray(list) ? list.filter((id) => typeof id === "string") : [];
}

export async function writeLayers(folder: string, layers: readonly string[]): Promise<void> {
  await writeWhole(join(folder, LIST), JSON.stringify(layers));
}

export async function writeWhole(file: string, text: string): Promise<void> {
  await writeFile(`${file}.new`, text, { mode: 0o600 });
  await rename(`${file}.new`, file);
}

/**
 * Adds to `upper` what `lower` has and `upper` neither has nor hides. Both are layers, so they do not change meanwhile.
 * `sealed` collects folders of `upper` that stand where `lower` has something else: what lies still lower is not theirs.
 */
export async function mergeInto(upper: string, lower: string, sealed: Set<string>): Promise<void> {
  await mergeFolder(Buffer.from(join(upper, "roots")), Buffer.from(join(lower, "roots")), sealed);
}

async function mergeFolder(upper: Buffer, lower: Buffer, sealed: Set<string>): Promise<void> {
  for (const name of await readdir(lower, { encoding: "buffer" })) {
    const to = within(upper, name);
    const from = within(lower, name);
    const theirs = await lstat(from);
    const ours = await lstat(to).catch(() => undefined);
    if (ours === undefined && theirs.isDirectory()) {
      await copyFolder(from, to, sealed);
    } else if (ours === undefined) {
      await link(from, to);
    } else if (ours.isDirectory() && !theirs.isDirectory()) {
      sealed.add(to.toString("hex"));
    } else if (ours.isDirectory() && !sealed.has(to.toString("hex"))) {
      await mergeFolder(to, from, sealed);
    }
  }
}

async function copyFolder(from: Buffer, to: Buffer, sealed: Set<string>): Promise<void> {
  await mkdir(to, { mode: 0o700 });
  await mergeFolder(to, from, sealed);
  await copyAttributes(from, to);
}

/** Owner, mode and times of a folder. */
export async function copyAttributes(from: string | Buffer, to: string | Buffer): Promise<void> {
  const found = await lstat(from);
  const mine = await lstat(to);
  if (mine.uid !== found.uid || mine.gid !== found.gid) await chown(to, found.uid, found.gid);
  await chmod(to, found.mode & 0o7777);
  await utimes(to, found.atime, found.mtime);
}

function within(folder: Buffer, name: Buffer): Buffer {
  return Buffer.concat([folder, Buffer.from("/"), name]);
}

/** The numbers of the roots that a stack of layers holds. */
export async function rootsOf(layers: readonly string[]): Promise<Map<string, string>> {
  const roots = new Map<string, string>();
  for (const layer of layers) {
    const folder = join(layer, "roots");
    if (!existsSync(folder)) continue;
    for (const name of await readdir(folder)) if (!roots.has(name)) roots.set(name, join(folder, name));
  }
  return roots;
}
