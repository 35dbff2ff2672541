/** Programs that the benchmark compares with, where they are installed. */
import { accessSync, constants } from "node:fs";
import { join } from "node:path";

export const INSTALL = "`npm run bench:setup` installs it";

/** Debian keeps runc where only root's PATH looks. */
export function find(program: string): string | undefined {
  const folders = [...(process.env["PATH"] ?? "").split(":"), "/usr/sbin", "/sbin"];
  return folders.map((folder) => join(folder, program)).find(isExecutable);
}

/** All of bwrap's walls around a program that ends at once; undefined where it is not installed. */
export function bwrapCommand(): [string, ...string[]] | undefined {
  const bwrap = find("bwrap");
  return bwrap === undefined ? undefined : [bwrap, "--bind", "/", "/", "--unshare-all", "--dev", "/dev", "--proc", "/proc", "/bin/true"];
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    // Whatever the reason, it can't be run.
    return false;
  }
}
