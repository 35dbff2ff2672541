/** Copies of volumes and snapshots: their upper sides, and the list of layers below. */
import { existsSync } from "node:fs";
import { copyFile, mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { SLOTS_FILE } from "../slots.ts";
import { readLayers, writeLayers } from "./layers.ts";
import { copyTree } from "./trees.ts";

/** Copies the upper sides; work folders hold nothing between mounts. */
export async function copyVolume(from: string, to: string): Promise<void> {
  await mkdir(to, { mode: 0o700 });
  for (const parent of await uppersOf(from)) {
    await mkdir(join(to, parent, "work"), { recursive: true, mode: 0o755 });
    await copyTree(join(from, parent, "upper"), join(to, parent, "upper"));
  }
  if (existsSync(join(from, SLOTS_FILE))) await copyFile(join(from, SLOTS_FILE), join(to, SLOTS_FILE));
  await writeLayers(to, await readLayers(from));
}

/** The folders of a volume that have an upper side: system, roots/<n>, live/<n>. */
async function uppersOf(folder: string): Promise<string[]> {
  const inside = async (name: string): Promise<string[]> =>
    existsSync(join(folder, name)) ? (await readdir(join(folder, name))).map((slot) => join(name, slot)) : [];
  return ["system", ...(await inside("roots")), ...(await inside("live"))];
}
