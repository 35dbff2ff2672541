/**
 * The new lines of a file that grows, also across its rotation: what is left of a file that was renamed is found by its inode, and read
 * before the new one. A file that was made shorter begins anew.
 */
import { constants } from "node:fs";
import { open, readdir, stat, type FileHandle } from "node:fs/promises";
import { dirname, join } from "node:path";
import { VivError } from "../../../base/schema/errors.ts";
import { LIMITS } from "../../../base/schema/limits.ts";

export interface LogPlace {
  /** Inode of the file; null before there is one. */
  readonly inode: number | null;
  /** Bytes that were read. */
  readonly offset: number;
}

export interface NewLines {
  readonly lines: readonly string[];
  readonly place: LogPlace;
  /** Whether there is more to be read. */
  readonly more: boolean;
  /** Bytes that were passed over, since too much came. */
  readonly skipped: number;
}

const NEWLINE = 0x0a;

/** Where the file ends now: what is in it already is nothing new. */
export async function endOfLog(path: string): Promise<LogPlace> {
  const stats = await stat(path).catch(() => undefined);
  return stats === undefined ? { inode: null, offset: 0 } : { inode: stats.ino, offset: stats.size };
}

export async function newLines(path: string, { inode, offset }: LogPlace): Promise<NewLines> {
  const now = await stat(path).catch(() => undefined);
  if (inode !== null && now?.ino !== inode) {
    const rest = await fromRotated(path, { inode, offset });
    if (rest !== undefined && rest.place.offset > offset) return { ...rest, more: true };
    return now === undefined ? nothing({ inode: null, offset: 0 }) : { ...nothing({ inode: now.ino, offset: 0 }), more: now.size > 0 };
  }
  if (now === undefined) return nothing({ inode, offset });
  return readFrom(path, { inode: now.ino, offset: now.size < offset ? 0 : offset }, false);
}

/** The end of the file that had the name before; undefined where it is gone. */
async function fromRotated(path: string, place: LogPlace): Promise<NewLines | undefined> {
  const folder = dirname(path);
  for (const name of await readdir(folder).catch(() => [])) {
    const file = join(folder, name);
    const stats = await stat(file).catch(() => undefined);
    if (stats?.ino === place.inode && stats.isFile()) return readFrom(file, place, true);
  }
  return undefined;
}

/** `isClosed` says that no more is written to it: then a last line without an end counts, too. */
async function readFrom(path: string, place: LogPlace, isClosed: boolean): Promise<NewLines> {
  let file: FileHandle;
  try {
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    throw new VivError("unsupported", `${path} can't be read: ${(error as NodeJS.ErrnoException).code ?? String(error)}.`, {
      cause: error,
    });
  }
  try {
    const stats = await file.stat();
    if (!stats.isFile()) throw new VivError("unsupported", `${path} is no regular file.`);
    const behind = stats.size - place.offset;
    const skipped = behind > LIMITS.logBehindBytes ? behind - LIMITS.logBehindBytes : 0;
    const from = place.offset + skipped;
    const bytes = Buffer.alloc(Math.min(LIMITS.logReadBytes, stats.size - from));
    const { bytesRead } = await file.read(bytes, 0, bytes.length, from);
    const read = bytes.subarray(0, bytesRead);
    const whole = wholeLines(read, isClosed && from + bytesRead >= stats.size);
    const lines = read
      .subarray(0, whole)
      .toString("utf8")
      .split("\n")
      .filter((line) => line !== "");
    const offset = from + whole;
    return {
      lines: lines.map((line) => line.slice(0, LIMITS.logLineBytes)),
      place: { inode: place.inode, offset },
      more: whole > 0 && offset < stats.size,
      skipped,
    };
  } finally {
    await file.close();
  }
}

/** Bytes up to the last line's end. A line that is longer than what is read at once counts as it is. */
function wholeLines(read: Buffer, isLast: boolean): number {
  if (isLast || (read.length === LIMITS.logReadBytes && !read.includes(NEWLINE))) return read.length;
  return read.lastIndexOf(NEWLINE) + 1;
}

function nothing(place: LogPlace): NewLines {
  return { lines: [], place, more: false, skipped: 0 };
}
