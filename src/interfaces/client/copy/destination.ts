/** Where on this machine a copy may be written: not in place of devices, pipes and other special files, nor among devices. */
import type { Stats } from "node:fs";
import { lstat, realpath, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { VivError } from "../../../base/schema/errors.ts";

const DEVICES = "/dev";

/** A copy takes the place of what has its name, so that is looked at: in a folder, it is not the path that the caller gave. */
export async function requireDestination(path: string, type: "file" | "dir", devices = DEVICES): Promise<void> {
  const remedy = "Copy to a file or a folder.";
  const refuse = (what: string): VivError => new VivError("exists", `${path} ${what}.`, { remedy });
  const [here, found] = await Promise.all([ifFound(lstat(path)), ifFound(stat(path))]);
  if (here !== undefined && found === undefined) throw refuse("is a link that leads nowhere");
  if (found !== undefined && isSpecial(found)) throw refuse("is a device or another special file");
  if (type === "dir" && found !== undefined && !found.isDirectory()) throw refuse("is no folder");
  if (type === "file" && found?.isDirectory() === true) throw refuse("is a folder");
  const folders = [dirname(path), ...(type === "dir" ? [path] : [])];
  for (const folder of folders) if (await isDeviceFolder(folder, devices)) throw refuse("is among the devices of this machine");
}

/** Whether it is the folder of devices, or on the file system that they have of their own. */
export async function isDeviceFolder(folder: string, devices = DEVICES): Promise<boolean> {
  const [own, all] = await Promise.all([real(folder), real(devices)]);
  if (own === all) return true;
  const [here, there, above] = await Promise.all([own, all, dirname(all)].map((path) => ifFound(stat(path))));
  return here !== undefined && here.dev === there?.dev && there.dev !== above?.dev;
}

/** Whether the path, or what a link there leads to, is neither a file nor a folder. */
export async function isSpecialFile(path: string): Promise<boolean> {
  const found = await ifFound(stat(path));
  return found !== undefined && isSpecial(found);
}

function isSpecial(found: Stats): boolean {
  return !found.isFile() && !found.isDirectory();
}

/** Of the nearest folder that is there. */
async function real(folder: string): Promise<string> {
  const found = await realpath(folder).catch(() => undefined);
  return found ?? (dirname(folder) === folder ? folder : real(dirname(folder)));
}

/** What is not there, or behind a folder that can't be entered, is not replaced either. */
function ifFound(looked: Promise<Stats>): Promise<Stats | undefined> {
  return looked.catch(() => undefined);
}
