/** Files that a chat client gives with a task: looked at whole before the first is written. */
import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { createTarPacker } from "modern-tar";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { GivenFile } from "../../base/schema/mcp.ts";

export interface Upload {
  readonly path: string;
  readonly content: Buffer;
}

const MEGABYTE = 1024 ** 2;
const MAX_PATH_BYTES = 1024;
const MAX_NAME_BYTES = 255;
const SHOWN = 80;
/** Base64 in either alphabet, with or without its padding. */
const BASE64 = /^[A-Za-z0-9+/_-]*={0,2}$/;
const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;

export function readUploads(files: readonly GivenFile[]): Upload[] {
  if (files.length > LIMITS.maxGivenFiles)
    throw refused(`${files.length} files are too many: a task takes ${LIMITS.maxGivenFiles}.`, "Send fewer, or one archive such as a .zip");
  const seen = new Map<string, string>();
  let bytes = 0;
  return files
    .map((file) => {
      const path = pathOf(file.path);
      const folded = path.normalize("NFC").toLowerCase();
      const other = seen.get(folded);
      if (other !== undefined)
        throw refused(
          other === path
            ? `The file ${shown(path)} is there twice.`
            : `${shown(other)} and ${shown(path)} differ only in how they are spelled.`,
          "Give each file a name of its own",
        );
      seen.set(folded, path);
      const content = contentOf(file, path);
      bytes += content.length;
      if (bytes > LIMITS.maxGivenBytes)
        throw refused(`The files are more than ${LIMITS.maxGivenBytes / MEGABYTE} MB together.`, "Send fewer or smaller files");
      return { path, content };
    })
    .map((upload) => refuseFolderOfSameName(upload, seen));
}

/** A file can't be a folder of another one. */
function refuseFolderOfSameName(upload: Upload, seen: ReadonlyMap<string, string>): Upload {
  const parts = upload.path.normalize("NFC").toLowerCase().split("/");
  for (let depth = 1; depth < parts.length; depth += 1) {
    const above = seen.get(parts.slice(0, depth).join("/"));
    if (above !== undefined) throw refused(`${shown(above)} would be both a file and a folder.`, "Give one of them another name");
  }
  return upload;
}

/** The path in its plain form, relative to the workspace. */
export function pathOf(path: string): string {
  const refusal = pathRefusal(path);
  if (refusal !== undefined) throw refused(`The path ${shown(path)} ${refusal}.`, "Use a relative path such as data/sales.csv");
  return path.replace(/^(?:\.\/)+/, "");
}

function pathRefusal(path: string): string | undefined {
  if (path === "" || path === ".") return "names no file";
  if (UNSAFE.test(path) || !path.isWellFormed()) return "holds characters that can't be seen";
  if (path.startsWith("/") || /^[A-Za-z]:/.test(path) || path.startsWith("~")) return "is not relative to the workspace";
  if (path.includes("\\")) return "holds a backslash; folders are divided by /";
  const parts = path.replace(/^(?:\.\/)+/, "").split("/");
  if (parts.includes("..")) return "leaves the workspace";
  if (parts.some((part) => part === "" || part === ".")) return "is not in plain form";
  if (Buffer.byteLength(path) > MAX_PATH_BYTES || parts.some((part) => Buffer.byteLength(part) > MAX_NAME_BYTES)) return "is too long";
  return undefined;
}

function contentOf({ content, text }: GivenFile, path: string): Buffer {
  const most = LIMITS.maxGivenFileBytes;
  const size = content === undefined ? Buffer.byteLength(text ?? "") : Math.floor((content.length * 3) / 4);
  if (size > most + 2)
    throw refused(
      `${shown(path)} is ${Math.round(size / MEGABYTE)} MB; a file is ${most / MEGABYTE} MB at most.`,
      "Send a smaller file, or let the task download it",
    );
  if (content === undefined) return Buffer.from(text ?? "");
  const plain = content.replaceAll(/\s+/g, "");
  const bare = plain.replace(/=+$/, "");
  const isPadded = plain.length === bare.length || plain.length % 4 === 0;
  if (!BASE64.test(plain) || bare.length % 4 === 1 || !isPadded)
    throw refused(`The content of ${shown(path)} is not base64.`, "Encode it as base64, or give it as text instead of content");
  return Buffer.from(bare, "base64url");
}

function shown(path: string): string {
  const plain = JSON.stringify(path.slice(0, SHOWN)).replaceAll(
    /[^ -~]/gu,
    (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`,
  );
  return path.length > SHOWN ? `${plain}...` : plain;
}

function refused(message: string, next: string): VivError {
  return new VivError("invalid_input", message, { remedy: `${next}, and call execute_task again.` });
}

export function sha256Of(content: Buffer): string {
  return createHash("sha256").update(content).digest("hex");
}

/** As one archive, for a sandbox. */
export function packed(uploads: readonly Upload[]): Readable {
  const { readable, controller } = createTarPacker();
  const pack = async (): Promise<void> => {
    for (const { path, content } of uploads) {
      const body = controller.add({ name: path, mode: 0o644, mtime: new Date(), type: "file", size: content.length }).getWriter();
      if (content.length > 0) await body.write(content);
      await body.close();
    }
    controller.finalize();
  };
  pack().catch((error: unknown) => controller.error(error));
  return Readable.fromWeb(readable as Parameters<typeof Readable.fromWeb>[0]);
}
