/**
 * JupyterLab's front end, for machines that have Jupyter's server and not the page: Vivarium carries it. Its own place may lie in a home
 * that sandboxes do not see, so it is copied once into a folder of the state folder that they see.
 */
import { chmod, cp, readdir, readFile, rename, rm } from "node:fs/promises";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { isReachedInside } from "../../base/host/shown-folder.ts";

const About = z.object({ version: z.string(), digest: z.string().regex(/^[0-9a-f]{16}$/) });

export class LabFiles {
  readonly #source: string | undefined;
  readonly #folder: string;
  #ready: Promise<string> | undefined;

  /** `source` is undefined where this copy of Vivarium carries none; `folder` is one that sandboxes see. */
  constructor(source: string | undefined, folder: string) {
    this.#source = source;
    this.#folder = folder;
  }

  /** The front end's folder, inside as outside; undefined if there is none. */
  async path(): Promise<string | undefined> {
    if (this.#source === undefined) return undefined;
    this.#ready ??= this.#prepare(this.#source);
    try {
      return await this.#ready;
    } catch (error) {
      // The next notebook tries again.
      this.#ready = undefined;
      throw error;
    }
  }

  async #prepare(source: string): Promise<string> {
    if (!(await isReachedInside(this.#folder))) return source;
    const { version, digest } = About.parse(JSON.parse(await readFile(join(source, "about.json"), "utf8")));
    const place = join(this.#folder, `lab-${version}-${digest}`);
    if (existsSync(place)) return place;
    const aside = `${place}.${process.pid}`;
    await rm(aside, { recursive: true, force: true });
    await cp(source, aside, { recursive: true });
    await openToRead(aside);
    await chmod(this.#folder, 0o755);
    // Of two servers that copy at once, the first that is done stays.
    await rename(aside, place).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOTEMPTY" && error.code !== "EEXIST") throw error;
    });
    await this.#removeOthers(place);
    return place;
  }

  /** Front ends of other versions, and what killed servers left: none that runs reads them twice. */
  async #removeOthers(place: string): Promise<void> {
    for (const name of await readdir(this.#folder)) {
      const path = join(this.#folder, name);
      if (name.startsWith("lab-") && path !== place) await rm(path, { recursive: true, force: true });
    }
  }
}

/** The package may have been installed with a mask that lets only its owner in. */
async function openToRead(folder: string): Promise<void> {
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true }))
    await chmod(join(entry.parentPath, entry.name), entry.isDirectory() ? 0o755 : 0o644);
  await chmod(folder, 0o755);
}
