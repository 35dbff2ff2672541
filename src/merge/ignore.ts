/** Which changed paths the ignore rules of the frozen base leave out. A sandbox's own rules count for nothing. */
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { TakeOut } from "../volumes/take-out.ts";
import type { Sides } from "../volumes/volumes.ts";
import type { GitStore } from "./store.ts";

const SLASH = 0x2f;
/** Rules of folders deeper than that can't be laid out for git. */
const MOST_PATH_BYTES = 2048;

/** Rules that lie outside the base. */
export interface OuterRules {
  /** Where the project lies in its repository, with a slash at the end; empty at the top. */
  readonly prefix: string;
  /** Contents of the rule files of the folders above the project, the topmost first. */
  readonly above: readonly Buffer[];
  /** Those of no folder. */
  readonly excludes: Buffer;
}

/** Of the paths, those that the rules ignore, as latin1. */
export async function ignoredPaths(
  store: GitStore,
  takeOut: TakeOut,
  { old }: Pick<Sides, "old">,
  paths: readonly Buffer[],
  outer: OuterRules,
): Promise<Set<string>> {
  if (paths.length === 0) return new Set();
  const rules = new Rules(await store.place("rules"), takeOut, old, outer);
  await rules.lay(foldersOf(paths));
  const exclude = await rules.exclude();
  const here = Buffer.from(`./${outer.prefix}`);
  const { stdout } = await store.git(
    [
      "-C",
      rules.top,
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
    { okCodes: [0, 1], input: paths.flatMap((path) => [here, path, Buffer.of(0)]) },
  );
  const answers = stdout.toString("latin1").split("\0").slice(0, -1);
  return new Set(answers.map((path) => path.slice(here.length)));
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
  /** Of the repository; the project's are in `folder` below it. */
  readonly top: string;
  readonly folder: string;
  readonly #takeOut: TakeOut;
  readonly #layers: readonly string[];
  readonly #outer: OuterRules;
  #taken = 0;

  constructor(top: string, takeOut: TakeOut, layers: readonly string[], outer: OuterRules) {
    this.top = top;
    this.folder = join(top, outer.prefix);
    this.#takeOut = takeOut;
    this.#layers = layers;
    this.#outer = outer;
  }

  async lay(folders: ReadonlySet<string>): Promise<void> {
    await this.#layAbove();
    for (const [file, taken] of await this.#take([...folders].map((folder) => join(folder, ".gitignore")))) {
      await mkdir(join(this.folder, dirname(file)), { recursive: true, mode: 0o700 });
      await rename(taken, join(this.folder, file));
    }
  }

  async #layAbove(): Promise<void> {
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    const names = this.#outer.prefix.split("/");
    for (const [depth, content] of this.#outer.above.entries())
      await writeFile(join(this.top, ...names.slice(0, depth), ".gitignore"), content);
  }

  /** Rules that the repository has beside the tree; later lines win, and those of the repository are more telling. */
  async exclude(): Promise<string> {
    const file = ".git/info/exclude";
    const taken = (await this.#take([file])).get(file);
    const own = taken === undefined ? Buffer.alloc(0) : await readFile(taken);
    const all = `${this.top}-exclude`;
    await writeFile(all, Buffer.concat([this.#outer.excludes, Buffer.from("\n"), own]));
    return all;
  }

  /** Files of the topmost layer that has each, and where they are now. */
  async #take(files: readonly string[]): Promise<Map<string, string>> {
    const found = new Map<string, string>();
    for (const layer of this.#layers) {
      const wanted = files.filter((file) => !found.has(file)).map((path) => ({ path, target: `${this.top}-${(this.#taken += 1)}` }));
      const taken = await this.#takeOut(layer, wanted);
      for (const { path, target } of wanted) if (taken.has(path)) found.set(path, target);
    }
    return found;
  }
}
