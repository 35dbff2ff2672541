/** The settings files of a git folder that is captured by itself: its own, and those of its submodules and worktrees. */
import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";

const NAMES = ["config", "config.worktree", "credentials"];

/** Relative paths; only those a folder beside a HEAD can have. */
export async function gitFolderConfigs(folder: string, path = ""): Promise<string[]> {
  const found: string[] = [];
  if (existsSync(join(folder, path, "HEAD"))) {
    found.push(...NAMES.map((name) => join(path, name)).filter((file) => existsSync(join(folder, file))));
    for (const container of ["modules", "worktrees"]) found.push(...(await below(folder, join(path, container))));
    return found;
  }
  return below(folder, path);
}

async function below(folder: string, path: string): Promise<string[]> {
  if (!existsSync(join(folder, path))) return [];
  const entries = await readdir(join(folder, path), { withFileTypes: true });
  const inside = await Promise.all(
    entries.filter((entry) => entry.isDirectory()).map((entry) => gitFolderConfigs(folder, join(path, entry.name))),
  );
  return inside.flat();
}
