/** A settings file of another program: read, written whole or not at all, and brought back. */
import { createHash } from "node:crypto";
import {
  chownSync,
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { VivError } from "../../base/schema/errors.ts";

/** What a file was before it was changed, for the way back. */
export interface Before {
  readonly file: string;
  /** Null where it was not there. */
  readonly text: string | null;
  /** Of what was written. */
  readonly written: string;
}

/** Undefined where it is not there. */
export function readSettingsFile(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

export function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/** A link stays one: what it leads to is written. Owner and mode stay, too. */
export function writeSettingsFile(file: string, text: string, expected: string | undefined): void {
  mkdirSync(dirname(file), { recursive: true });
  const target = existsSync(file) ? realpathSync(file) : file;
  const found = existsSync(target) ? statSync(target) : undefined;
  const aside = join(dirname(target), `.${basename(target)}.viv-${process.pid}`);
  const handle = openSync(aside, "wx", found === undefined ? 0o600 : found.mode & 0o777);
  try {
    writeFileSync(handle, text);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
  try {
    if (found !== undefined && process.geteuid?.() === 0) chownSync(aside, found.uid, found.gid);
    if (readSettingsFile(file) !== expected)
      throw new VivError("busy", `${file} was changed by another program in this moment; nothing was written.`, {
        remedy: "Run the command again.",
      });
    renameSync(aside, target);
  } catch (error) {
    rmSync(aside, { force: true });
    throw error;
  }
}

/** Where the way back of a client's settings is kept. */
export function beforeFile(state: string, client: string): string {
  return join(state, "mcp-clients", `${client}.json`);
}

export function keepBefore(state: string, client: string, before: Before): void {
  const file = beforeFile(state, client);
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  writeSettingsFile(file, JSON.stringify(before), readSettingsFile(file));
}

export function readBefore(state: string, client: string): Before | undefined {
  const text = readSettingsFile(beforeFile(state, client));
  return text === undefined ? undefined : (JSON.parse(text) as Before);
}
