/** Whether programs inside reach a folder of the state folder that every sandbox sees. */
import { stat } from "node:fs/promises";
import { dirname } from "node:path";

/** Every sandbox has folders for temporary files of its own. */
function isTemporary(path: string): boolean {
  return path.startsWith("/tmp/") || path.startsWith("/var/tmp/");
}

/** By every user inside. The state folder itself is open there; what lies above it is as in reality. */
export async function isReachedInside(folder: string): Promise<boolean> {
  if (isTemporary(folder)) return false;
  if (process.getuid?.() !== 0) return true;
  for (let above = dirname(dirname(folder)); above !== "/"; above = dirname(above))
    if (((await stat(above)).mode & 0o001) === 0) return false;
  return true;
}
