/** A folder of reality as an archive for a sandbox. Links are listed apart; special files are left out. */
import { createReadStream, type Stats } from "node:fs";
import { lstat, readdir, readlink } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { createTarPacker, type TarPackController } from "modern-tar";
import type { Skipped } from "./receive.ts";

export interface FoundLink {
  readonly path: string;
  readonly target: string;
}

export interface PackedArchive {
  readonly archive: Readable;
  /** Filled while the archive is read. */
  readonly links: FoundLink[];
  readonly skipped: Skipped[];
}

export function packFolder(folder: string): PackedArchive {
  const { readable, controller } = createTarPacker();
  const packed: PackedArchive = { archive: Readable.fromWeb(readable as Parameters<typeof Readable.fromWeb>[0]), links: [], skipped: [] };
  packBelow(folder, "", controller, packed).then(
    () => controller.finalize(),
    (error: unknown) => controller.error(error),
  );
  return packed;
}

async function packBelow(root: string, below: string, controller: TarPackController, packed: PackedArchive): Promise<void> {
  for (const name of await readdir(join(root, below))) {
    const path = below === "" ? name : `${below}/${name}`;
    const full = join(root, path);
    const why = unsendable(name);
    if (why !== undefined) {
      packed.skipped.push({ path, why });
      continue;
    }
    const found = await lstat(full);
    const header = { name: path, mode: found.mode & 0o777, mtime: found.mtime };
    if (found.isDirectory()) {
      await controller.add({ ...header, name: `${path}/`, type: "directory", size: 0 }).close();
      await packBelow(root, path, controller, packed);
    } else if (found.isFile()) {
      await packFile(full, found, controller.add({ ...header, type: "file", size: found.size }));
    } else if (found.isSymbolicLink()) {
      packed.links.push({ path, target: await readlink(full) });
    } else {
      packed.skipped.push({ path, why: "it is a special file" });
    }
  }
}

/** Names that an archive can't carry into a sandbox. */
function unsendable(name: string): string | undefined {
  if (name.includes("\ufffd")) return "its name is not UTF-8";
  return name.includes("\n") ? "its name has a line break" : undefined;
}

/** The header has promised a size: a file that grows meanwhile is cut there, one that shrinks fails the copy. */
async function packFile(path: string, found: Stats, body: WritableStream<Uint8Array>): Promise<void> {
  if (found.size === 0) return body.close();
  const source = Readable.toWeb(createReadStream(path, { end: found.size - 1 }));
  await source.pipeTo(body as Parameters<typeof source.pipeTo>[0]);
}
