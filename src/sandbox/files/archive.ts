/** Many files at once, as tar. Archives from outside are checked whole before the first byte is written. */
import { createReadStream } from "node:fs";
import { open, rm } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { createTarDecoder, createTarPacker, type ParsedTarEntry } from "modern-tar";
import type { FileOperations } from "../../machine/drivers/drivers.ts";
import { VivError } from "../../base/schema/errors.ts";
import { newId } from "../../base/schema/ids.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import { ArchiveContents, MAX_ENTRIES } from "./archive-contents.ts";

const MAX_DEPTH = 100;

/** A tar archive of a file or folder; special files are left out. */
export async function pack(files: FileOperations, path: string, user: string): Promise<Readable> {
  const entries = await files.list(path, user, MAX_DEPTH, MAX_ENTRIES);
  // A sparse file says any size and costs its owner nothing.
  const bytes = entries.reduce((sum, entry) => sum + (entry.type === "file" ? entry.size : 0), 0);
  if (bytes > LIMITS.maxDownloadBytes)
    throw new VivError("invalid_input", `The files are ${bytes} bytes; an archive holds ${LIMITS.maxDownloadBytes} at most.`);
  const { readable, controller } = createTarPacker();
  const work = async (): Promise<void> => {
    for (const entry of entries) {
      const header = {
        name: entry.path,
        mode: Number.parseInt(entry.mode, 8) & 0o777,
        mtime: archiveTime(entry.modifiedAt),
        uid: entry.uid,
        gid: entry.gid,
      };
      if (entry.type === "dir") await controller.add({ ...header, name: `${entry.path}/`, type: "directory", size: 0 }).close();
      else if (entry.type === "link") await controller.add({ ...header, type: "symlink", linkname: entry.target ?? "", size: 0 }).close();
      else if (entry.type === "file")
        await packFile(files, join(path, entry.path), user, (size) => controller.add({ ...header, type: "file", size }));
    }
    controller.finalize();
  };
  work().catch((error: unknown) => controller.error(error));
  return Readable.fromWeb(readable as Parameters<typeof Readable.fromWeb>[0]);
}

/** Eleven octal digits hold no more; a sandbox may have set anything. */
function archiveTime(modifiedAt: string): Date {
  return new Date(Math.max(0, Math.min(Date.parse(modifiedAt), (8 ** 11 - 1) * 1000)));
}

/** The size is that of the moment it is opened: a file that shrinks is filled up, one that grows is cut. */
async function packFile(
  files: FileOperations,
  path: string,
  user: string,
  add: (size: number) => WritableStream<Uint8Array>,
): Promise<void> {
  const { entry, body } = await files.read(path, user);
  const writer = add(entry.size).getWriter();
  let left = entry.size;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    const part = chunk.subarray(0, left);
    left -= part.length;
    if (part.length > 0) await writer.write(part);
  }
  while (left > 0) {
    const zeros = new Uint8Array(Math.min(left, 65_536));
    left -= zeros.length;
    await writer.write(zeros);
  }
  await writer.close();
}

/** Unpacks into a folder; refuses the whole archive if any entry is not a plain file or folder below it. */
export async function unpack(
  files: FileOperations,
  folder: string,
  archive: Readable,
  user: string,
  { temporary, mostBytes }: { temporary: string; mostBytes: number },
): Promise<{ files: number; bytes: number }> {
  const spool = join(temporary, `${newId("command")}.tar`);
  try {
    const contents = new ArchiveContents(Math.min(mostBytes, LIMITS.maxUploadBytes));
    await eachEntry(keepAside(archive, spool, contents), async (entry) => contents.add(entry));
    const done = { files: 0, bytes: 0 };
    await files.mkdir(folder, user, true);
    await eachEntry(createReadStream(spool), async ({ header, body }) => {
      const path = join(folder, header.name);
      if (header.type === "directory") return files.mkdir(path, user, true);
      await files.write(path, user, body as AsyncIterable<Uint8Array>, { mode: (header.mode ?? 0o644) & 0o777, parents: true });
      done.files += 1;
      done.bytes += header.size;
    });
    return done;
  } finally {
    await rm(spool, { force: true });
  }
}

/** Passes an archive on while it is written down, so that one that is refused is not received to its end. */
async function* keepAside(archive: Readable, spool: string, contents: ArchiveContents): AsyncGenerator<Buffer, void, void> {
  const file = await open(spool, "wx", 0o600);
  let seen = 0;
  try {
    for await (const chunk of archive as AsyncIterable<Buffer>) {
      seen += chunk.length;
      if (seen > contents.mostBytesSoFar)
        throw new VivError("invalid_input", "The archive is larger than its entries; nothing was unpacked.");
      await file.appendFile(chunk);
      yield chunk;
    }
  } finally {
    await file.close();
  }
}

async function eachEntry(archive: AsyncIterable<Buffer>, work: (entry: ParsedTarEntry) => Promise<void>): Promise<void> {
  const source = Readable.toWeb(Readable.from(archive, { objectMode: false })) as unknown as ReadableStream<Uint8Array>;
  try {
    for await (const entry of source.pipeThrough(createTarDecoder({ strict: true }))) {
      await work(entry);
      if (!entry.body.locked) await entry.body.cancel();
    }
  } catch (error) {
    // A number of the kernel, such as that of a full disk, says nothing about the archive.
    if (error instanceof VivError || (error as NodeJS.ErrnoException).errno !== undefined) throw error;
    throw new VivError("invalid_input", "The body is not a tar archive.", { cause: error });
  }
}
