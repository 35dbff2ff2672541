/** Which changed paths ignore rules leave out: those of the frozen base, and those that were made inside. */
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { CopyFilesOut } from "../volumes/copy-files-out.ts";
import type { GatheredChange } from "../volumes/gather.ts";
import type { FolderSides } from "../volumes/comparison.ts";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { GitStore } from "./store.ts";

const RULES = ".gitignore";

const SLASH = 0x2f;
/** Rules of folders deeper than that can't be laid out for git. */
const MOST_PATH_BYTES = 2048;

/** Rules that lie outside the base. */
export interface OuterRules {
  /** Where the project lies in its repository, with a slash at the end; empty at the top. */
  readonly prefix: string;
  /** Contents of the rule files of the folders above the project, the topmost first. */
  readonly above: readonly Buffer[];
  /** Rules that belong to no folder. */
  readonly excludes: Buffer;
}

/** Paths as latin1. */
export interface IgnoredPaths {
  readonly byBase: ReadonlySet<string>;
  /** Not in the base, and ignored by the rules as they are inside, but not by the base's. */
  readonly byInside: ReadonlySet<string>;
}

const NOTHING: IgnoredPaths = { byBase: new Set(), byInside: new Set() };

/** The changed files that rules ignore. */
export async function ignoredPaths(
  store: GitStore,
  takeOut: CopyFilesOut,
  sides: FolderSides,
  files: readonly GatheredChange[],
  outer: OuterRules,
): Promise<IgnoredPaths> {
  if (files.length === 0) return NOTHING;
  const paths = files.map(({ path }) => path);
  const rules = new Rules(await store.place("rules"), takeOut, sides.before?.base ?? sides.old, outer);
  await rules.lay(foldersOf(paths));
  const exclude = await rules.exclude();
  const byBase = await check(store, rules, exclude, paths);
  const changed = files.filter(isRules).slice(0, LIMITS.maxRuleFiles);
  // A file of the base is never left out by a rule that came later.
  const fresh = files.filter(({ path, old }) => old === null && !byBase.has(path.toString("latin1"))).map(({ path }) => path);
  if (changed.length === 0 || fresh.length === 0) return { byBase, byInside: NOTHING.byInside };
  await rules.layOver([sides.new, ...sides.old], changed);
  return { byBase, byInside: await checkInside(store, rules, exclude, fresh) };
}

/** Patterns that were written inside may take git forever, or all its memory: then no rule made inside counts. */
async function checkInside(store: GitStore, rules: Rules, exclude: string, paths: readonly Buffer[]): Promise<ReadonlySet<string>> {
  try {
    return await check(store, rules, exclude, paths, LIMITS.insideRulesMs);
  } catch (error) {
    if (error instanceof VivError) return NOTHING.byInside;
    throw error;
  }
}

function isRules({ path, new: now }: GatheredChange): boolean {
  const name = path.subarray(path.lastIndexOf(SLASH) + 1).toString("latin1");
  // A folder of that name holds no rules that could be laid out beside those of the file.
  const above = path.toString("latin1").split("/").slice(0, -1);
  // What is no file now says nothing, as if it were gone.
  return (
    name === RULES &&
    !above.includes(RULES) &&
    path.length <= MOST_PATH_BYTES &&
    !path.toString().includes("\ufffd") &&
    now?.mode !== "40000"
  );
}

async function check(
  store: GitStore,
  rules: Rules,
  exclude: string,
  paths: readonly Buffer[],
  timeoutMs?: number,
): Promise<ReadonlySet<string>> {
  if (rules.isEmpty) return new Set();
  const here = Buffer.from(`./${rules.prefix}`);
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
    {
      okCodes: [0, 1],
      input: paths.flatMap((path) => [here, path, Buffer.of(0)]),
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
    },
  );
  const answers = stdout.toString("latin1").split("\0").slice(0, -1);
  return new Set(answers.map((path) => path.slice(here.length)));
}

/** A new repository has a file of excludes with nothing but comments. */
function saysSomething(rules: Buffer): boolean {
  return /^[^#\r\n]/m.test(rules.toString("latin1"));
}

/** Every folder above one of the paths, the topmost as "". */
function foldersOf(paths: readonly Buffer[]): Set<string> {
  const folders = new Set([""]);
  for (const path of paths) {
    for (let end = path.lastIndexOf(SLASH); end > 0; end = path.lastIndexOf(SLASH, end - 1)) {
      const folder = path.subarray(0, end).toString();
      // A rules file that is not text can't be given to git.
      if (end > MOST_PATH_BYTES || folder.includes("\ufffd") || folder.split("/").includes(RULES)) continue;
      if (folders.has(folder)) break;
      folders.add(folder);
    }
  }
  return folders;
}

/** Rule files, laid out in a folder of ours as in the project. */
class Rules {
  /** Top folder of the repository; the project is in `folder` below it. */
  readonly top: string;
  readonly folder: string;
  readonly #takeOut: CopyFilesOut;
  readonly #layers: readonly string[];
  readonly #outer: OuterRules;
  #taken = 0;
  #isEmpty = true;

  constructor(top: string, takeOut: CopyFilesOut, layers: readonly string[], outer: OuterRules) {
    this.top = top;
    this.folder = join(top, outer.prefix);
    this.#takeOut = takeOut;
    this.#layers = layers;
    this.#outer = outer;
  }

  /** Whether there is nothing that could ignore a path: then git need not be asked. */
  get isEmpty(): boolean {
    return this.#isEmpty;
  }

  get prefix(): string {
    return this.#outer.prefix;
  }

  /** Writes the rules of the base. */
  async lay(folders: ReadonlySet<string>): Promise<void> {
    await this.#layAbove();
    await this.#put(await this.#take([...folders].map((folder) => join(folder, RULES))));
  }

  /** In their place those that are others inside. */
  async layOver(layers: readonly string[], changed: readonly GatheredChange[]): Promise<void> {
    for (const { path } of changed) await rm(join(this.folder, path.toString()), { force: true });
    const there = changed.filter(({ new: now }) => now?.mode === "100644" || now?.mode === "100755");
    await this.#put(
      await this.#take(
        there.map(({ path }) => path.toString()),
        layers,
      ),
    );
  }

  async #put(taken: ReadonlyMap<string, string>): Promise<void> {
    if (taken.size > 0) this.#isEmpty = false;
    for (const [file, from] of taken) {
      await mkdir(join(this.folder, dirname(file)), { recursive: true, mode: 0o700 });
      await rename(from, join(this.folder, file));
    }
  }

  async #layAbove(): Promise<void> {
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    const names = this.#outer.prefix.split("/");
    if (this.#outer.above.some(saysSomething)) this.#isEmpty = false;
    for (const [depth, content] of this.#outer.above.entries())
      await writeFile(join(this.top, ...names.slice(0, depth), ".gitignore"), content);
  }

  /** Rules that the repository has beside the tree; later lines win, and those of the repository are more telling. */
  async exclude(): Promise<string> {
    const file = ".git/info/exclude";
    const taken = (await this.#take([file])).get(file);
    const own = taken === undefined ? Buffer.alloc(0) : await readFile(taken);
    const all = `${this.top}-exclude`;
    const content = Buffer.concat([this.#outer.excludes, Buffer.from("\n"), own]);
    if (saysSomething(content)) this.#isEmpty = false;
    await writeFile(all, content);
    return all;
  }

  /** Files of the topmost layer that has each, and where they are now. */
  async #take(files: readonly string[], layers: readonly string[] = this.#layers): Promise<Map<string, string>> {
    const found = new Map<string, string>();
    for (const layer of layers) {
      const wanted = files.filter((file) => !found.has(file)).map((path) => ({ path, target: `${this.top}-${(this.#taken += 1)}` }));
      const taken = await this.#takeOut(layer, wanted);
      for (const { path, target } of wanted) if (taken.has(path)) found.set(path, target);
    }
    return found;
  }
}
