/** Small files of the state folder that only their owner reads, such as keys. */
import { closeSync, fsyncSync, linkSync, lstatSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { VivError } from "../schema/errors.ts";

/** The file's text; undefined if there is none. One that others can read is refused. */
export function readPrivateFile(path: string): string | undefined {
  try {
    const found = lstatSync(path);
    if (!found.isFile() || (found.mode & 0o077) !== 0)
      throw new VivError("secret_unreadable", `${path} is not a file that only you can read.`, {
        remedy: "Give it the mode 0600; if others could read it, replace what it protects.",
      });
    return readFileSync(path, "utf8").trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/** Durable when this returns, and never over one that is there. */
export function makePrivateFile(path: string, text: string): void {
  const draft = `${path}.new`;
  rmSync(draft, { force: true });
  const file = openSync(draft, "wx", 0o600);
  try {
    writeSync(file, `${text}\n`);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  linkSync(draft, path);
  rmSync(draft);
}
