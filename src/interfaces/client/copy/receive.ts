/**
 * Unpacks an archive from a sandbox into a folder of reality. The archive is hostile: nothing is written outside the
 * folder or through a link, no special file is made, no set-id bit is kept.
 */
import { randomBytes } from "node:crypto";
import { createWriteStream } from "node:fs";
import { chmod, lstat, mkdir, rename, rm, symlink, utimes } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createTarDecoder, type ParsedTarEntry, type TarHeader } from "modern-tar";
import { VivError } from "../../../base/schema/errors.ts";
import { isDeviceFolder, isSpecialFile } from "./destination.ts";

export interface Skipped {
  readonly path: string;
  readonly why: string;
}

export interface Received {
  files: number;
  bytes: number;
  readonly skipped: Skipped[];
}

interface PendingLink {
  readonly path: string;
  readonly parts: readonly string[];
  readonly target: string;
}

/** Parts of a name in the archive; [] for the folder itself; undefined for one that leads elsewhere. */
export function safeParts(name: string): string[] | undefined {
  if (name.startsWith("/") || name.includes("\0")) return undefined;
  const parts = name.split("/").filter((part) => part !== "" && part !== ".");
  return parts.includes("..") ? undefined : parts;
}

/**
 * Whether a link at these parts can only lead into the folder: relative, with ".." at its beginning alone and no more of
 * them than it lies deep. A ".." after a name could climb from wherever a link of that name leads.
 */
export function isInnerLink(parts: readonly string[], target: string): boolean {
  if (target === "" || target.startsWith("/") || target.includes("\0")) return false;
  const steps = target.split("/").filter((step) => step !== "" && step !== ".");
  const up = steps.findIndex((step) => step !== "..");
  const climbs = up < 0 ? steps.length : up;
  return climbs <= parts.length - 1 && !steps.slice(climbs).includes("..");
}

interface Meta {
  readonly mode?: number | undefined;
  readonly mtime?: Date | undefined;
}

/** Writes one stream to a file. */
export async function receiveFile(path: string, body: Readable, meta: Meta): Promise<number> {
  return placeFile(path, meta, async (fresh) => {
    const file = createWriteStream(fresh, { flags: "wx", mode: 0o600 });
    await pipeline(body, file);
    return file.bytesWritten;
  });
}

/** A file by way of a new one beside it, so that a link of that name is replaced, not used. `write` makes it, and says how large it is. */
export async function placeFile(path: string, meta: Meta, write: (fresh: string) => Promise<number>): Promise<number> {
  const folder = join(path, "..");
  const fresh = join(folder, `.viv-${randomBytes(8).toString("hex")}`);
  try {
    const size = await write(fresh);
    // The user's umask counts here as it does for cp.
    await chmod(fresh, (meta.mode ?? 0o644) & 0o777 & ~process.umask());
    if (meta.mtime !== undefined) await utimes(fresh, meta.mtime, meta.mtime);
    await rename(fresh, path);
    return size;
  } catch (error) {
    await rm(fresh, { force: true });
    throw error;
  }
}

/** `devices` is the folder of this machine's devices. */
export async function receiveFolder(folder: string, archive: Readable, devices?: string): Promise<Received> {
  const receiver = new Receiver(folder, devices);
  await mkdir(folder, { recursive: true });
  const source = Readable.toWeb(archive) as unknown as ReadableStream<Uint8Array>;
  try {
    for await (const entry of source.pipeThrough(createTarDecoder({ strict: true }))) await receiver.take(entry);
  } catch (error) {
    archive.destroy();
    throw error;
  }
  return receiver.finish();
}

class Receiver {
  readonly #folder: string;
  readonly #devices: string | undefined;
  readonly #result: Received = { files: 0, bytes: 0, skipped: [] };
  /** Folders known to be real ones: made or looked at by this run. */
  readonly #real = new Set<string>();
  readonly #links: PendingLink[] = [];
  readonly #modes: { path: string; mode: number }[] = [];

  constructor(folder: string, devices: string | undefined) {
    this.#folder = folder;
    this.#devices = devices;
  }

  async take({ header, body }: ParsedTarEntry): Promise<void> {
    const why = await this.#write(header, body);
    if (why === undefined) return;
    await body.cancel();
    this.#result.skipped.push({ path: header.name, why });
  }

  /** Links come last: no file of the archive can be written through one of its own. */
  async finish(): Promise<Received> {
    for (const { path, parts, target } of this.#links) {
      const why = await this.#link(parts, target);
      if (why !== undefined) this.#result.skipped.push({ path, why });
    }
    for (const { path, mode } of this.#modes.toReversed()) await chmod(path, mode);
    return this.#result;
  }

  /** Returns why an entry was left out. */
  async #write(header: TarHeader, body: ReadableStream<Uint8Array>): Promise<string | undefined> {
    const parts = safeParts(header.name);
    if (parts === undefined) return "its name leads outside";
    if (header.name.includes("\ufffd")) return "its name is not UTF-8";
    switch (header.type ?? "file") {
      case "directory":
        return this.#makeFolder(parts, header);
      case "file":
        return this.#writeFile(parts, header, body);
      case "symlink":
        if (!isInnerLink(parts, header.linkname ?? "")) return "it is a link that leads outside";
        this.#links.push({ path: header.name, parts, target: header.linkname ?? "" });
        await body.cancel();
        return undefined;
      case "link":
        return "it is a hard link";
      default:
        return "it is a special file";
    }
  }

  async #makeFolder(parts: readonly string[], header: TarHeader): Promise<string | undefined> {
    const why = await this.#enter(parts);
    if (why === undefined && parts.length > 0) {
      this.#modes.push({ path: join(this.#folder, ...parts), mode: ((header.mode ?? 0o755) & 0o777 & ~process.umask()) | 0o700 });
    }
    return why;
  }

  async #writeFile(parts: readonly string[], header: TarHeader, body: ReadableStream<Uint8Array>): Promise<string | undefined> {
    if (parts.length === 0) return "it has no name";
    const why = (await this.#enter(parts.slice(0, -1))) ?? (await this.#blocked(parts));
    if (why !== undefined) return why;
    const stream = Readable.fromWeb(body as Parameters<typeof Readable.fromWeb>[0]);
    this.#result.bytes += await receiveFile(join(this.#folder, ...parts), stream, header);
    this.#result.files += 1;
    return undefined;
  }

  /** Makes the folders on the way, or finds that each one is a real folder. */
  async #enter(parts: readonly string[]): Promise<string | undefined> {
    for (let depth = 1; depth <= parts.length; depth += 1) {
      const path = join(this.#folder, ...parts.slice(0, depth));
      if (this.#real.has(path)) continue;
      try {
        await mkdir(path, { mode: 0o700 });
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
        if (!(await lstat(path)).isDirectory()) return "something that is no folder is in its way";
        if (await isDeviceFolder(path, this.#devices)) return "it would be among the devices of this machine";
      }
      this.#real.add(path);
    }
    return undefined;
  }

  async #blocked(parts: readonly string[]): Promise<string | undefined> {
    const path = join(this.#folder, ...parts);
    const found = await lstat(path).catch(ifMissing);
    if (found?.isDirectory()) return "a folder is in its way";
    return found !== undefined && (await isSpecialFile(path)) ? "a device or another special file is in its way" : undefined;
  }

  async #link(parts: readonly string[], target: string): Promise<string | undefined> {
    const why = (await this.#enter(parts.slice(0, -1))) ?? (await this.#blocked(parts));
    if (why !== undefined) return why;
    const path = join(this.#folder, ...parts);
    await rm(path, { force: true });
    await symlink(target, path);
    return undefined;
  }
}

function ifMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw new VivError("internal", error.message, { cause: error });
}
