/** Copies of a project's folder, each with a mark that says of which base it is. */
import { statSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { projectIn } from "../volumes.ts";
import { copyTree } from "./trees.ts";

/** Written last into a volume or snapshot: the id of its base. Its time tells when the copy was complete. */
export const MARK = "base";

/** A copy of a base. */
export async function copyBase(from: string, to: string, base: string): Promise<void> {
  await fill(from, to, base);
}

/** A copy of a volume or a snapshot. */
export async function copyCopy(from: string, to: string): Promise<void> {
  await fill(from, to, await readFile(join(from, MARK), "utf8"), statSync(join(from, MARK)).mtimeMs);
}

async function fill(from: string, to: string, base: string, since?: number): Promise<void> {
  await mkdir(join(to, "roots"), { recursive: true, mode: 0o700 });
  await copyTree(projectIn(from), projectIn(to), since === undefined ? {} : { since });
  await writeFile(join(to, MARK), base, { mode: 0o600 });
}
