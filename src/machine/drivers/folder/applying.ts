/** Changes to the tree of an unwalled sandbox, step by step, with every folder on the way looked at: none may be a link. */
import { randomBytes } from "node:crypto";
import { type Stats } from "node:fs";
import { chmod, lstat, mkdir, open, rename, rm, rmdir, symlink, unlink } from "node:fs/promises";
import { VivError } from "../../../base/schema/errors.ts";
import { encodePath } from "../../../base/schema/path-bytes.ts";
import type { FileStep } from "../drivers.ts";

const SLASH = Buffer.from("/");
const join = (folder: Buffer, name: Buffer): Buffer => Buffer.concat([folder, SLASH, name]);

/** False: something stands there that changed after the time `since`, and is left alone. */
export async function applyStep(root: string, step: FileStep, since: number): Promise<boolean> {
  const names = step.path.split("/");
  if (names.some((name) => name === "" || name === "." || name === "..")) throw new VivError("invalid_input", `${step.path}: not a path`);
  const last = encodePath(names.pop() ?? "");
  const folder = await findFolder(Buffer.from(root), names, step.do !== "remove" && step.do !== "prune", step.do === "folder");
  if (folder === undefined) return true;
  const place = join(folder, last);
  if (step.do === "prune" || step.do === "folder") {
    await (step.do === "prune" ? ignoring(NOT_PRUNED, rmdir(place)) : ignoring(["EEXIST"], mkdir(place)));
    return true;
  }
  const found = await statusOf(place);
  if (step.do === "remove" && found?.isDirectory() === true) return true;
  if (found !== undefined && (await isLate(place, found, since))) return false;
  if (step.do === "remove") await ignoring(["ENOENT"], unlink(place));
  else if (step.do === "link") await replaceByLink(place, encodePath(step.target));
  else await replaceByFile(folder, place, step);
  return true;
}

const NOT_PRUNED = ["ENOTEMPTY", "EEXIST", "ENOENT", "ENOTDIR", "EBUSY"];

/** A folder is late if there is something in it. */
async function isLate(place: Buffer, found: Stats, since: number): Promise<boolean> {
  if (!Number.isFinite(since)) return false;
  if (!found.isDirectory()) return Math.floor(found.ctimeMs) >= since;
  await ignoring(NOT_PRUNED, rmdir(place));
  return (await statusOf(place)) !== undefined;
}

/** Undefined where there is none and none is to be made. */
async function findFolder(root: Buffer, names: readonly string[], make: boolean, lenient: boolean): Promise<Buffer | undefined> {
  let folder = root;
  for (const name of names) {
    folder = join(folder, encodePath(name));
    const found = await statusOf(folder);
    if (found === undefined && make) await mkdir(folder);
    else if (found?.isDirectory() !== true && make && !lenient) throw new VivError("invalid_input", `${folder.toString()}: not a folder`);
    else if (found?.isDirectory() !== true) return undefined;
  }
  return folder;
}

async function replaceByLink(place: Buffer, target: Buffer): Promise<void> {
  await rm(place, { recursive: true, force: true });
  await symlink(target, place);
}

async function replaceByFile(folder: Buffer, place: Buffer, step: Extract<FileStep, { do: "file" }>): Promise<void> {
  const aside = join(folder, Buffer.from(`.viv-${randomBytes(8).toString("hex")}`));
  try {
    const file = await open(aside, "wx", 0o600);
    try {
      for await (const part of step.body) await file.writeFile(part);
    } finally {
      await file.close();
    }
    const before = await statusOf(place);
    if (before?.isDirectory() === true) await rm(place, { recursive: true });
    await chmod(aside, modeFor(before, step.executable));
    await rename(aside, place);
  } catch (error) {
    await rm(aside, { force: true });
    throw error;
  }
}

/** Of the mode only the executable bit travels; a user who may read an executable file may run it. */
function modeFor(before: Stats | undefined, executable: boolean): number {
  const mode = before?.isFile() === true ? before.mode & 0o777 : 0o644;
  return executable ? mode | ((mode & 0o444) >> 2) : mode & ~0o111;
}

async function statusOf(place: Buffer): Promise<Stats | undefined> {
  let found: Stats | undefined;
  await ignoring(
    ["ENOENT"],
    lstat(place).then((status) => (found = status)),
  );
  return found;
}

async function ignoring(codes: readonly string[], work: Promise<unknown>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!codes.includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
  }
}
