/** Which changed paths the ignore rules of the frozen base leave out. A sandbox's own rules count for nothing. */
import { mkdir, readFile, rename } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Sides } from "../volumes/volumes.ts";
import type { GitStore } from "./store.ts";
import type { TakeOut } from "./system.ts";

const SLASH = 0x2f;
const HERE = Buffer.from("./");
/** Rules of folders deeper than that can't be laid out for git. */
const MOST_PATH_BYTES = 2048;
/** How many files are asked for at once. */
const AT_ONCE = 32;

/** Of the paths, those that the rules ignore, as latin1. */
export async function ignoredPaths(
  store: GitStore,
  takeOut: TakeOut,
  { old }: Pick<Sides, "old">,
  paths: readonly Buffer[],
): Promise<Set<string>> {
  if (paths.length === 0) return new Set();
  const rules = new Rules(await store.place("rules"), takeOut, old);
  await rules.lay(foldersOf(paths));
  const exclude = await rules.exclude();
  const { stdout } = await store.git(
    [
      "-C",
      rules.folder,
      "--work-tree=.",
      "-c",
      "core.bare=false",
      "-c",
      `core.excludesFile=${exclude}`,
      "check-ignore",
      "--no-index",
      "-z",
      "--stdin",
    ],
    // A path that begins with a colon would be a pattern.
    { okCodes: [0, 1], input: paths.flatMap((path) => [HERE, path, Buffer.of(0)]) },
  );
  const answers = stdout.toString("latin1").split("\0").slice(0, -1);
  return new Set(answers.map((path) => path.slice(HERE.length)));
}

/** Every folder above one of the paths, the topmost as "". */
function foldersOf(paths: readonly Buffer[]): Set<string> {
  const folders = new Set([""]);
  for (const path of paths) {
    for (let end = path.lastIndexOf(SLASH); end > 0; end = path.lastIndexOf(SLASH, end - 1)) {
      const folder = path.subarray(0, end).toString();
      // What is not text has no rules of its own that git could be shown.
      if (end > MOST_PATH_BYTES || folder.includes("\ufffd")) continue;
      if (folders.has(folder)) break;
      folders.add(folder);
    }
  }
  return folders;
}

/** The rule files of a base, laid out in a folder of ours as in the project. */
class Rules {
  readonly folder: string;
  readonly #takeOut: TakeOut;
  readonly #layers: readonly string[];
  #taken = 0;

  constructor(folder: string, takeOut: TakeOut, layers: readonly string[]) {
    this.folder = folder;
    this.#takeOut = takeOut;
    this.#layers = layers;
  }

  async lay(folders: ReadonlySet<string>): Promise<void> {
    const waiting = [...folders];
    const next = async (): Promise<void> => {
      for (let folder = waiting.pop(); folder !== undefined; folder = waiting.pop()) {
        const file = join(folder, ".gitignore");
        const taken = await this.#take(file);
        if (taken === undefined) continue;
        await mkdir(join(this.folder, dirname(file)), { recursive: true, mode: 0o700 });
        await rename(taken, join(this.folder, file));
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, next));
  }

  /** Rules that the repository has beside the tree. */
  async exclude(): Promise<string> {
    const taken = await this.#take(".git/info/exclude");
    return taken !== undefined && (await readFile(taken)).length > 0 ? taken : "/dev/null";
  }

  async #take(file: string): Promise<string | undefined> {
    for (const layer of this.#layers) {
      this.#taken += 1;
      const target = `${this.folder}-${this.#taken}`;
      if (await this.#takeOut(layer, file, target)) return target;
    }
    return undefined;
  }
}
