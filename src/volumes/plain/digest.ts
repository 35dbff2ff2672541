/** One number for everything in a folder: names, kinds, modes, owners, times, links, attributes and contents. */
import { createHash } from "node:crypto";
import { runToStream } from "../../host/run.ts";
import { HOUR_MS, overAllModes } from "./trees.ts";

/**
 * An archive of the folder is what is hashed, as it streams by: tar never follows a link, knows everything a copy keeps,
 * and skips holes. Names are sorted, and what reading changes or another process would name differently is left out.
 */
export async function digestOf(folder: string): Promise<string> {
  const options = [
    "--create",
    "--file=-",
    "--sort=name",
    "--sparse",
    "--numeric-owner",
    "--format=posix",
    "--pax-option=exthdr.name=%d/%f,delete=atime,delete=ctime",
    "--xattrs",
    "--xattrs-include=*",
    "--warning=no-file-ignored",
    `--directory=${folder}`,
    ".",
  ];
  const hash = createHash("sha256");
  for await (const chunk of runToStream(...overAllModes("tar", options), { timeoutMs: HOUR_MS })) hash.update(chunk as Buffer);
  return hash.digest("hex");
}
