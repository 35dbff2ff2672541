/** Files and folders of this machine into a sandbox, and out of it. */
import { createReadStream } from "node:fs";
import { open, stat } from "node:fs/promises";
import { basename, join, posix, resolve } from "node:path";
import { pipeline } from "node:stream/promises";
import { VivError } from "../../../base/schema/errors.ts";
import type { FileEntry } from "../../../base/schema/files.ts";
import type { Client } from "../client.ts";
import type { Carried, Carrier } from "./carrier.ts";
import { requireDestination } from "./destination.ts";
import { placeFile, receiveFolder, type Skipped } from "./receive.ts";
import { packFolder, type FoundLink } from "./send.ts";

/** A path in a sandbox. */
export interface Inside {
  readonly sandbox: string;
  readonly path: string;
  /** User inside whose rights apply. */
  readonly user?: string;
}

export interface CopyReport {
  readonly to: string;
  readonly files: number;
  readonly bytes: number;
  /** What was left out: links that lead elsewhere, special files. */
  readonly skipped: readonly Skipped[];
}

/** The name a copy gets in a folder that exists; "" when the source means its content ("src/." or "/"). */
function nameOf(path: string): string {
  const name = path.endsWith("/.") ? "" : posix.basename(path);
  return name === "." || name === ".." ? "" : name;
}

/** Below this, starting a program would take longer than it saves. */
const CARRIED_BYTES = 4 * 1024 ** 2;

export async function download(client: Client, from: Inside, target: string, signal?: AbortSignal, carrier?: Carrier): Promise<CopyReport> {
  const user = userOf(from);
  const entry = await client.call("statFile", { sandbox: from.sandbox, path: from.path, ...user }, signal);
  const existing = await stat(target).catch(() => undefined);
  const to = existing?.isDirectory() ? join(target, nameOf(from.path)) : target;
  if (entry.type === "dir") {
    await requireDestination(to, "dir");
    const archive = await client.packFiles(from.sandbox, from.path, from.user, signal);
    return { to, ...(await receiveFolder(to, archive)) };
  }
  if (entry.type !== "file") throw notCopied(entry, from.path);
  await requireDestination(to, "file");
  const meta = { mode: Number.parseInt(entry.mode, 8), mtime: new Date(entry.modifiedAt) };
  const written = await placeFile(to, meta, async (fresh) => {
    const file = await open(fresh, "wx", 0o600);
    try {
      const isLarge = entry.size >= CARRIED_BYTES;
      if (isLarge && (await carrier?.carry({ ...from, direction: "read" }, file.fd)) !== undefined) return (await file.stat()).size;
      await file.truncate();
      const { body } = await client.readFile(from.sandbox, from.path, from.user, signal);
      const stream = file.createWriteStream({ start: 0 });
      await pipeline(body, stream);
      return stream.bytesWritten;
    } finally {
      await file.close();
    }
  });
  return { to, files: 1, bytes: written, skipped: [] };
}

function notCopied(entry: FileEntry, path: string): VivError {
  const what = entry.type === "link" ? `a link to ${entry.target ?? "somewhere"}` : `a special file (${entry.type})`;
  return new VivError("invalid_input", `${path} is ${what}.`, { remedy: "Copy a file or a folder; of a link, copy what it leads to." });
}

export async function upload(client: Client, source: string, to: Inside, signal?: AbortSignal, carrier?: Carrier): Promise<CopyReport> {
  const user = userOf(to);
  const found = await stat(source).catch((error: NodeJS.ErrnoException) => {
    throw new VivError("file_not_found", `${source} can't be read: ${error.code ?? error.message}.`, {
      cause: error,
      remedy: "Check the path on this machine.",
    });
  });
  const { sandbox } = to;
  const path = await targetInside(client, source, to);
  if (found.isFile()) {
    const size = found.size < CARRIED_BYTES ? undefined : await carryIn(carrier, source, { ...to, path, mode: found.mode & 0o777 });
    if (size !== undefined) return { to: `${sandbox}:${path}`, files: 1, bytes: size, skipped: [] };
    const entry = await client.writeFile(sandbox, path, createReadStream(source), {
      mode: found.mode & 0o777,
      ...user,
      ...(signal === undefined ? {} : { signal }),
    });
    return { to: `${sandbox}:${path}`, files: 1, bytes: entry.size, skipped: [] };
  }
  if (!found.isDirectory()) throw specialFile(source);
  await client.call("makeFolder", { sandbox, path, parents: true, ...user }, signal);
  const packed = packFolder(resolve(source));
  const { files, bytes: size } = await client.unpackFiles(sandbox, path, packed.archive, to.user, signal);
  const skipped = [...packed.skipped, ...(await makeLinks(client, { ...to, path }, packed.links))];
  return { to: `${sandbox}:${path}`, files, bytes: size, skipped };
}

/** The size of the file inside; undefined where it could not be carried. */
async function carryIn(carrier: Carrier | undefined, source: string, to: Omit<Carried, "direction">): Promise<number | undefined> {
  if (carrier === undefined) return undefined;
  const file = await open(source);
  try {
    return ((await carrier.carry({ ...to, direction: "write" }, file.fd)) as FileEntry | undefined)?.size;
  } finally {
    await file.close();
  }
}

function specialFile(source: string): VivError {
  return new VivError("invalid_input", `${source} is a special file.`, { remedy: "Copy a file or a folder." });
}

function userOf({ user }: Inside): { user?: string } {
  return user === undefined ? {} : { user };
}

async function targetInside(client: Client, source: string, to: Inside): Promise<string> {
  try {
    const entry = await client.call("statFile", { sandbox: to.sandbox, path: to.path, ...userOf(to) });
    const name = source.endsWith("/.") ? "" : basename(resolve(source));
    return entry.type === "dir" ? posix.join(to.path, name) : to.path;
  } catch (error) {
    if (error instanceof VivError && error.code === "file_not_found") return to.path;
    throw error;
  }
}

const LINKS_AT_ONCE = 200;
const LINK_SCRIPT = 'cd -- "$1" || exit; shift; while [ $# -gt 1 ]; do ln -sfn -- "$1" "$2" || exit; shift 2; done';

/** Archives carry no links into a sandbox; a command inside makes them, with the rights of the user there. */
async function makeLinks(client: Client, folder: Inside, links: readonly FoundLink[]): Promise<Skipped[]> {
  const { sandbox, path } = folder;
  const skipped: Skipped[] = [];
  for (let start = 0; start < links.length; start += LINKS_AT_ONCE) {
    const batch = links.slice(start, start + LINKS_AT_ONCE);
    const words = batch.flatMap((link) => [link.target, `./${link.path}`]);
    const result = await client.call("runCommand", {
      sandbox,
      command: ["/bin/sh", "-c", LINK_SCRIPT, "sh", path, ...words],
      ...userOf(folder),
    });
    if (result.end?.exitCode !== 0) skipped.push(...batch.map((link) => ({ path: link.path, why: "the link could not be made" })));
  }
  return skipped;
}
