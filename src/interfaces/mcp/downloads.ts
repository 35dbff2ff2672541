/** Files out of a sandbox: into the conversation where they are small, or into a new folder of the person's. */
import { mkdir, open, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Readable } from "node:stream";
import type { Client } from "../client/client.ts";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { McpParts } from "./parts.ts";
import { fileUri } from "./sessions.ts";
import { pathOf } from "./uploads.ts";

const MEGABYTE = 1024 ** 2;

interface Downloaded {
  readonly path: string;
  readonly size: number;
  /** Base64. */
  readonly content?: string;
  readonly saved?: string;
  readonly resource?: string;
}

async function* bounded(body: Readable, most: number, path: string): AsyncGenerator<Buffer, void, void> {
  let size = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > most) {
      body.destroy();
      throw new VivError("invalid_input", `${JSON.stringify(path)} is larger than ${Math.ceil(most / MEGABYTE)} MB.`, {
        remedy: "Call download_files with save: true.",
      });
    }
    yield chunk;
  }
}

/** The size that a file says of itself is not trusted. */
export async function readWhole(client: Client, sandbox: string, path: string, most: number): Promise<Buffer> {
  const { body } = await client.readFile(sandbox, path);
  const chunks: Buffer[] = [];
  for await (const chunk of bounded(body, most, path)) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** As many as fit into a conversation with their content; the others with an address. */
export async function inConversation(client: Client, sandbox: string, paths: readonly string[]): Promise<Downloaded[]> {
  const files: Downloaded[] = [];
  let left: number = LIMITS.toolDownloadBytes;
  for (const path of paths) {
    const { size, type } = await client.call("statFile", { sandbox, path });
    if (type !== "file")
      throw new VivError("invalid_input", `${JSON.stringify(path)} is not a file.`, {
        remedy: "Call get_sandbox_status to see which files there are.",
      });
    if (size > left) {
      files.push({ path, size, resource: fileUri(sandbox, path) });
      continue;
    }
    const content = await readWhole(client, sandbox, path, LIMITS.toolDownloadBytes);
    left -= content.length;
    files.push({ path, size: content.length, content: content.toString("base64") });
  }
  return files;
}

/**
 * Into a folder that is made for this alone: nothing that is there is touched. Names come from the sandbox, so only plain relative ones
 * are taken; no file is executable.
 */
export async function save(
  client: Client,
  sandbox: string,
  paths: readonly string[],
  { downloads }: Pick<McpParts, "downloads">,
  name: string,
): Promise<{ folder: string; files: Downloaded[] }> {
  if (downloads === undefined)
    throw new VivError("unsupported", "Files can only be saved by `viv mcp` on the person's own machine.", {
      remedy: "Call download_files without save, or read the resource of a file.",
    });
  const folder = await newFolder(join(downloads, `vivarium-${name}`));
  const files: Downloaded[] = [];
  let left: number = LIMITS.maxSavedBytes;
  for (const path of paths) {
    const target = join(folder, pathOf(path));
    await mkdir(dirname(target), { recursive: true });
    const { body } = await client.readFile(sandbox, path);
    const size = await write(target, bounded(body, left, path));
    left -= size;
    files.push({ path, size, saved: target });
  }
  return { folder, files };
}

async function write(target: string, body: AsyncIterable<Buffer>): Promise<number> {
  const file = await open(target, "wx", 0o644);
  let size = 0;
  try {
    for await (const chunk of body) {
      await file.write(chunk);
      size += chunk.length;
    }
  } catch (error) {
    await rm(target, { force: true });
    throw error;
  } finally {
    await file.close();
  }
  return size;
}

async function newFolder(wanted: string): Promise<string> {
  await mkdir(dirname(wanted), { recursive: true });
  for (let number = 1; ; number += 1) {
    const folder = number === 1 ? wanted : `${wanted}-${number}`;
    try {
      await mkdir(folder);
      return folder;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
  }
}
