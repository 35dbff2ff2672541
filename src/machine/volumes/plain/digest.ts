/** One number for everything in a folder: names, kinds, modes, owners, times, links, attributes and contents. */
import { createHash } from "node:crypto";
import { runChecked, runToStream } from "../../../base/host/run.ts";
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
    // The others put the number of the process into a name.
    "--sparse-version=0.0",
    "--numeric-owner",
    "--format=posix",
    "--pax-option=exthdr.name=%d/%f,delete=atime,delete=ctime",
    "--xattrs",
    "--xattrs-include=*",
    "--warning=no-file-ignored",
    `--directory=${folder}`,
    ".",
  ];
  // Where a file has holes is settled when it is written back, and not before.
  await runChecked("sync", ["--file-system", folder], { timeoutMs: HOUR_MS });
  const hash = createHash("sha256");
  for await (const chunk of runToStream(...overAllModes("tar", options), { timeoutMs: HOUR_MS })) hash.update(chunk as Buffer);
  return hash.digest("hex");
}
