/**
 * The Node that runs TypeScript inside. That of the machine may be too old, and the server's own may lie in a folder that sandboxes do
 * not see. So the server's own is put into a folder of the state folder that every sandbox sees, read-only like the rest of the system.
 */
import { chmod, constants, copyFile, link, mkdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { isReachedInside } from "../../base/host/shown-folder.ts";

export class NodeRuntime {
  readonly #program: string;
  readonly #folder: string;
  #ready: Promise<string> | undefined;

  /** `folder` is the one of the state folder that sandboxes see. */
  constructor(folder: string) {
    this.#folder = folder;
    this.#program = join(folder, process.version, "node");
  }

  /** Path of the program, inside as outside. */
  async path(): Promise<string> {
    this.#ready ??= this.#prepare();
    try {
      return await this.#ready;
    } catch (error) {
      // The next job tries again.
      this.#ready = undefined;
      throw error;
    }
  }

  async #prepare(): Promise<string> {
    if (!(await isReachedInside(this.#folder))) return process.execPath;
    const { size } = await stat(process.execPath);
    const there = await stat(this.#program).catch(() => undefined);
    if (there?.size === size) return this.#program;
    const aside = `${this.#program}.${process.pid}`;
    await mkdir(dirname(this.#program), { recursive: true, mode: 0o755 });
    await rm(aside, { force: true });
    // A link costs nothing; it takes the same file system, and a file that this user owns.
    await link(process.execPath, aside).catch(() => copyFile(process.execPath, aside, constants.COPYFILE_FICLONE));
    for (const path of [dirname(dirname(this.#program)), dirname(this.#program)]) await chmod(path, 0o755);
    await rename(aside, this.#program);
    return this.#program;
  }
}
