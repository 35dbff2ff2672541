/** Reads a text file that another user may have written: never through a link, never from a pipe or a device, never without a bound. */
import { constants } from "node:fs";
import { open } from "node:fs/promises";

/** Undefined where there is no regular file of at most so many bytes that can be read. */
export async function readRegular(path: string, mostBytes: number): Promise<Buffer | undefined> {
  let file;
  try {
    // A pipe without a writer would keep an ordinary open waiting.
    file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch {
    return undefined;
  }
  try {
    const found = await file.stat();
    return found.isFile() && found.size <= mostBytes ? await file.readFile() : undefined;
  } finally {
    await file.close();
  }
}
