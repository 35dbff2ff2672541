/** How many files a project has, as it was frozen. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { isMadeAgain } from "../guardian/made-again.ts";

/** Without those of git and those that tools make again. Of folders that lie over each other, topmost first, every path counts once. */
export async function countFiles(folders: readonly string[]): Promise<number> {
  const seen = new Set<string>();
  let files = 0;
  for (const folder of folders) {
    const left = [""];
    for (let below = left.pop(); below !== undefined; below = left.pop()) {
      for (const entry of await readdir(join(folder, below), { withFileTypes: true })) {
        const path = below === "" ? entry.name : `${below}/${entry.name}`;
        if (path === ".git" || isMadeAgain(path)) continue;
        if (entry.isDirectory()) left.push(path);
        else if (!seen.has(path)) {
          seen.add(path);
          // An overlay marks what is gone from the folders below by a device.
          if (!entry.isCharacterDevice()) files += 1;
        }
      }
    }
  }
  return files;
}
