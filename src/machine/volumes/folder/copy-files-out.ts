/** Single files taken out of a copied tree, by Node alone. */
import { constants } from "node:fs";
import { open, realpath } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { LIMITS } from "../../../base/schema/limits.ts";
import type { CopyFilesOut } from "../copy-files-out.ts";
import { isGone } from "./trees.ts";

export const takeOutOfCopy: CopyFilesOut = async (root, files) => {
  const taken = new Set<string>();
  for (const { path, target } of files) if (await copyOut(root, path, target)) taken.add(path);
  return taken;
};

async function copyOut(root: string, path: string, target: string): Promise<boolean> {
  const source = join(root, path);
  try {
    const folder = await realpath(root);
    if ((await realpath(dirname(source))) !== dirname(join(folder, path))) return false;
    const file = await open(source, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const found = await file.stat();
      if (!found.isFile() || found.size > LIMITS.maxCountedFileBytes) return false;
      const copy = await open(target, "wx", 0o600);
      await pipeline(file.createReadStream({ autoClose: false, end: LIMITS.maxCountedFileBytes }), copy.createWriteStream());
      return true;
    } finally {
      await file.close();
    }
  } catch (error) {
    if (isGone(error) || (error as NodeJS.ErrnoException).code === "ELOOP") return false;
    throw error;
  }
}
