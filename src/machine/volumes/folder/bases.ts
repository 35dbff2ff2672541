import { existsSync } from "node:fs";
import { mkdir, rename } from "node:fs/promises";
import { join } from "node:path";
import type { Bases, Tip } from "../bases.ts";
import { requireHostSpace } from "../space.ts";
import type { VolumeFolders } from "../volume-folders.ts";
import { projectIn } from "../volumes.ts";

export class FolderBases implements Bases {
  readonly #folders: VolumeFolders;

  constructor(folders: VolumeFolders) {
    this.#folders = folders;
  }

  /** An empty folder: a copy is always whole, with what did not change linked from the base before. */
  async openTip(project: string): Promise<Tip> {
    requireHostSpace(this.#folders.folder);
    await this.#folders.remove("tip", project);
    const folder = this.#folders.path("tip", project);
    for (const inside of ["roots", "manifests"]) await mkdir(join(folder, inside), { recursive: true, mode: 0o700 });
    return { folder, mode: "tip", manifests: join(folder, "manifests/") };
  }

  async freeze(project: string, base: string): Promise<void> {
    this.#folders.add(base);
    await rename(this.#folders.path("tip", project), this.#folders.path("base", base));
  }

  async manifests(base: string): Promise<string> {
    return join(this.#folders.path("base", base), "manifests/");
  }

  /** A base's copy of the project; undefined when the base is gone. */
  frozen(base: string): string | undefined {
    const folder = projectIn(this.#folders.path("base", base));
    return existsSync(folder) ? folder : undefined;
  }

  async remove(base: string): Promise<void> {
    await this.#folders.remove("base", base);
  }
}
