/**
 * A private bare git store for one operation. Git sees contents that were taken out for it and trees that are listed to it,
 * never a folder that another program wrote, and no config, attribute, hook or filter but those written here.
 */
import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
import { appendFile, type FileHandle, mkdir, mkdtemp, open, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { setTimeout as rest } from "node:timers/promises";
import { requireExitCode, run, runChecked, runToStream, TOOL_PATH, type RunResult } from "../../base/host/run.ts";
import type { Tool } from "../../base/host/tool.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { GitMode } from "../volumes/gather.ts";

/** A content is named by its number in the blobs that come along, or by its object id. */
export interface TreeEntry {
  readonly path: Buffer;
  readonly mode: GitMode;
  readonly content: number | string;
}

export interface TreeRequest {
  readonly entries: readonly TreeEntry[];
  /** Index of the tree in the same request that this one comes from. */
  readonly parent?: number;
  /** Name by which git's commands know it, made of letters. */
  readonly name?: string;
}

export interface WrittenObjects {
  /** Object ids of commits that hold the trees, in the order of the request. */
  readonly trees: readonly string[];
  /** Object id of every content that came along. */
  readonly contents: ReadonlyMap<number, string>;
}

/** A repository whose objects the store reads, besides its own. */
export interface ForeignRepository {
  /** Its objects folder. */
  readonly objects: string;
  readonly format: "sha1" | "sha256";
  /** Its list of commits whose parents are not there, where it is shallow. */
  readonly shallow: Buffer | null;
}

type GitOptions = {
  readonly okCodes?: readonly number[];
  readonly maxOutputBytes?: number;
  readonly input?: Iterable<Uint8Array> | AsyncIterable<Uint8Array>;
  /** Added to the variables that every run has. */
  readonly env?: Readonly<Record<string, string>>;
  /** Until git is ended. */
  readonly timeoutMs?: number;
  /** Memory that git may use. */
  readonly mostMemoryBytes?: number;
};

type RunSettings = Omit<GitOptions, "okCodes" | "input" | "mostMemoryBytes"> & {
  readonly okCodes?: readonly number[] | "any" | undefined;
  /** The bytes, or the file that holds them. */
  readonly input?: GitOptions["input"] | string;
};

export interface StoreOptions {
  readonly borrowed?: ForeignRepository;
  /** What runs git; a child of this process if left out. */
  readonly tool?: Tool | undefined;
}

export interface WriteOptions {
  /** The file with the contents stays, with what git was told behind them. */
  readonly keepsBlobs?: boolean;
}

const READ_AGAIN_MS = 5;
const NOTHING_READ = { bytesRead: 0 };

const CONFIG = `[core]
\trepositoryformatversion = 1
\tbare = true
\tcompression = 0
\tfsmonitor = false
\thooksPath = /dev/null
\tattributesFile = /dev/null
\texcludesFile = /dev/null
\tprotectNTFS = false
\tprotectHFS = false
\tfsync = none
[pack]
\tcompression = 0
\tthreads = 1
[fastimport]
\tunpackLimit = 0
[gc]
\tauto = 0
[merge]
\tconflictStyle = merge
[diff]
\trenames = true
`;
/** These come before the attributes of any tree, and say that nothing is said. */
const ATTRIBUTES =
  "* !text !eol !crlf !filter !ident !diff !merge !whitespace !working-tree-encoding !conflict-marker-size !export-subst\n";
/**
 * git takes and gives back a quarter of a megabyte for every object that it writes. By itself libc returns that to the
 * kernel each time, which takes longer than the writing.
 */
const KEEPS_MEMORY = { MALLOC_TRIM_THRESHOLD_: String(64 * 1024 ** 2), MALLOC_TOP_PAD_: String(1024 ** 2) };
const MARK_OF_TREES = 1_000_000_000;
const READ_BYTES = 1024 ** 2;
const MOST_ARGUMENT_BYTES = 256 * 1024;

export class GitStore {
  readonly folder: string;
  readonly #borrowed: ForeignRepository | undefined;
  readonly #tool: Tool | undefined;
  #isMade = false;
  #writes = 0;
  #inputs = 0;

  private constructor(folder: string, { borrowed, tool }: StoreOptions) {
    this.folder = folder;
    this.#borrowed = borrowed;
    this.#tool = tool;
  }

  /** A new store in a folder of ours. */
  static async open(parent: string, options: StoreOptions = {}): Promise<GitStore> {
    return new GitStore(await mkdtemp(join(parent, "store-")), options);
  }

  /** What git finds there, made when it is first asked: many changes are none. */
  #make(): void {
    if (this.#isMade) return;
    this.#isMade = true;
    const git = this.#git;
    for (const name of ["objects", "refs", "info"]) mkdirSync(join(git, name), { recursive: true, mode: 0o700 });
    // HEAD names a branch that never exists, so there is no tree whose attributes git would take by itself.
    writeFileSync(join(git, "HEAD"), "ref: refs/heads/none\n");
    writeFileSync(join(git, "config"), CONFIG);
    writeFileSync(join(git, "info", "attributes"), ATTRIBUTES);
    if (this.#borrowed !== undefined) this.#borrow(this.#borrowed);
  }

  #borrow({ objects, format, shallow }: ForeignRepository): void {
    const git = this.#git;
    appendFileSync(join(git, "config"), `[extensions]\n\tobjectFormat = ${format}\n`);
    if (shallow !== null) writeFileSync(join(git, "shallow"), shallow);
    mkdirSync(join(git, "objects", "info"), { mode: 0o700 });
    writeFileSync(join(git, "objects", "info", "alternates"), `${JSON.stringify(objects)}\n`);
  }

  get #git(): string {
    return join(this.folder, "git");
  }

  get objects(): string {
    this.#make();
    return join(this.#git, "objects");
  }

  get index(): string {
    return join(this.#git, "index");
  }

  get #settings(): { readonly env: Readonly<Record<string, string>>; readonly cwd: string; readonly timeoutMs: number } {
    this.#make();
    const env = {
      PATH: TOOL_PATH,
      LC_ALL: "C",
      HOME: this.folder,
      GIT_DIR: this.#git,
      GIT_CONFIG_GLOBAL: "/dev/null",
      GIT_CONFIG_NOSYSTEM: "1",
      GIT_ATTR_NOSYSTEM: "1",
      GIT_OPTIONAL_LOCKS: "0",
      GIT_TERMINAL_PROMPT: "0",
      GIT_NO_REPLACE_OBJECTS: "1",
      ...KEEPS_MEMORY,
    };
    return { env, cwd: this.folder, timeoutMs: LIMITS.patchTimeoutMs };
  }

  async git(args: readonly string[], { env = {}, mostMemoryBytes, ...options }: GitOptions = {}): Promise<RunResult> {
    if (mostMemoryBytes === undefined) return this.#run("git", args, { ...options, env });
    const limited = ["-c", 'ulimit -v "$0" && exec git "$@"', String(Math.floor(mostMemoryBytes / 1024)), ...args];
    return this.#run("sh", limited, { ...options, env });
  }

  /** As git(), for a caller that reads any exit code as an answer. */
  async ask(args: readonly string[]): Promise<RunResult> {
    return this.#run("git", args, { okCodes: "any" });
  }

  async #run(program: string, args: readonly string[], { okCodes, input, ...own }: RunSettings): Promise<RunResult> {
    const settings = this.#settings;
    const options = {
      ...settings,
      timeoutMs: own.timeoutMs ?? settings.timeoutMs,
      maxOutputBytes: own.maxOutputBytes ?? LIMITS.maxCountedBytes,
      env: { ...settings.env, ...own.env },
    };
    const result =
      this.#tool === undefined || !fitsRequest(args)
        ? await run(program, args, {
            ...options,
            ...(input === undefined ? {} : { input: typeof input === "string" ? [await readFile(input)] : input }),
          })
        : await this.#tool(program, args, { ...options, folder: this.folder, input: await this.#asFile(input) });
    return okCodes === "any" ? result : requireExitCode(program, args, result, okCodes);
  }

  async #asFile(input: RunSettings["input"]): Promise<string | undefined> {
    if (input === undefined || typeof input === "string") return input;
    this.#inputs += 1;
    const file = join(this.folder, `input-${this.#inputs}`);
    // In one piece: every chunk would be a write of its own.
    await writeFile(file, Symbol.iterator in input ? Buffer.concat([...input]) : input);
    return file;
  }

  stream(args: readonly string[], input?: Iterable<Uint8Array>): Readable {
    return runToStream("git", args, { ...this.#settings, ...(input === undefined ? {} : { input }) });
  }

  /** Writes contents and trees with one run of git. */
  async write(trees: readonly TreeRequest[], blobs: string | null = null, options: WriteOptions = {}): Promise<WrittenObjects> {
    return this.writeAlong(Promise.resolve(trees), blobs, options);
  }

  /** The same while the contents are still being written down: `trees` come when they are complete. Without either, git is not asked. */
  async writeAlong(
    coming: Promise<readonly TreeRequest[]>,
    blobs: string | null,
    { keepsBlobs = false }: WriteOptions = {},
  ): Promise<WrittenObjects> {
    const amount = await amountOf(coming, blobs);
    if (amount === "nothing") return { trees: [], contents: new Map() };
    this.#writes += 1;
    const number = this.#writes;
    const marks = join(this.folder, `marks-${number}`);
    const args = ["fast-import", "--quiet", "--force", "--done", "--date-format=raw", "--depth=0", `--export-marks=${marks}`];
    if (amount === "a lot") await runChecked("git", args, { ...this.#settings, input: everything(coming, blobs, number) });
    else {
      const file = blobs ?? join(this.folder, `commands-${number}`);
      await appendFile(file, commandsOf(await coming, number));
      await this.#run("git", args, { input: file });
    }
    if (blobs !== null && !keepsBlobs) await rm(blobs, { force: true });
    return readMarks(await readFile(marks, "latin1"), (await coming).length);
  }

  /** An empty folder that goes with the store. */
  async place(name: string): Promise<string> {
    const folder = join(this.folder, name);
    await mkdir(folder, { mode: 0o700 });
    return folder;
  }

  /** Removes it in the background, since removing files can take longer than making them. The next server removes what is left. */
  discard(): void {
    this.close().catch(() => undefined);
  }

  async close(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }
}

/** How much there is to store: nothing, little, or so much that git should begin before all of it is there. */
async function amountOf(coming: Promise<readonly TreeRequest[]>, blobs: string | null): Promise<"nothing" | "little" | "a lot"> {
  let trees: number | undefined;
  const ended = coming.then(({ length }) => (trees = length));
  ended.catch(() => undefined);
  for (;;) {
    // Looked at before the file: what was written by then is seen now.
    const known = trees;
    const { size } = (blobs === null ? undefined : await stat(blobs).catch(absent)) ?? { size: 0 };
    if (size >= READ_BYTES) return "a lot";
    if (known !== undefined) return size > 0 || known > 0 || blobs === null ? "little" : "nothing";
    await Promise.race([ended, rest(READ_AGAIN_MS)]);
  }
}

async function* everything(
  coming: Promise<readonly TreeRequest[]>,
  blobs: string | null,
  number: number,
): AsyncGenerator<Uint8Array, void, void> {
  if (blobs !== null) yield* readAlong(blobs, coming);
  yield commandsOf(await coming, number);
}

/** The empty content is always there. */
function commandsOf(trees: readonly TreeRequest[], number: number): Buffer {
  const commits = trees.flatMap((tree, index) => commitCommands(tree, index, number));
  return Buffer.concat([Buffer.from("blob\ndata 0\n\n"), ...commits, Buffer.from("done\n")]);
}

/** A request to the helper has an end; what is longer, the server runs itself. */
function fitsRequest(args: readonly string[]): boolean {
  return args.reduce((sum, arg) => sum + Buffer.byteLength(arg) + 1, 0) < MOST_ARGUMENT_BYTES;
}

/**
 * The bytes of a file that grows until `complete`; it may not be there yet. With `room` each piece lies where the last one did, for
 * a caller that needs it no longer than until the next: thousands of fresh ones would keep the collector of garbage busy.
 */
export async function* readAlong(path: string, complete: Promise<unknown>, room?: Buffer): AsyncGenerator<Buffer, void, void> {
  let done = false;
  const ended = complete.then(
    () => (done = true),
    () => (done = true),
  );
  let file: FileHandle | undefined;
  let place = room ?? Buffer.allocUnsafe(READ_BYTES);
  try {
    for (;;) {
      // Looked at before reading: what was written by then is read now.
      const last = done;
      file ??= await open(path, "r").catch(absent);
      const { bytesRead } = (await file?.read(place, 0, place.length)) ?? NOTHING_READ;
      if (bytesRead > 0) {
        yield place.subarray(0, bytesRead);
        place = room ?? Buffer.allocUnsafe(READ_BYTES);
      } else if (last) return;
      else await Promise.race([ended, rest(READ_AGAIN_MS)]);
    }
  } finally {
    await file?.close();
  }
}

function absent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
}

function commitCommands({ entries, parent, name }: TreeRequest, index: number, write: number): Buffer[] {
  const ref = name === undefined ? `refs/vivarium/${write}-${index}` : `refs/heads/${name}`;
  const from = parent === undefined ? "" : `from :${MARK_OF_TREES + parent}\ndeleteall\n`;
  const head = `commit ${ref}\nmark :${MARK_OF_TREES + index}\ncommitter vivarium <vivarium> 0 +0000\ndata 0\n${from}`;
  const lines = entries.map(
    ({ path, mode, content }) => `M ${mode} ${typeof content === "number" ? `:${content}` : content} ${quote(path)}\n`,
  );
  return [Buffer.from(head), Buffer.from(lines.join(""), "latin1"), Buffer.from("\n")];
}

/** A path as fast-import reads it, whatever its bytes are: only plain characters stand for themselves. */
function quote(path: Buffer): string {
  const escape = (byte: string): string => `\\${byte.charCodeAt(0).toString(8).padStart(3, "0")}`;
  return `"${path.toString("latin1").replace(/[^ !#-[\]-~]/g, escape)}"`;
}

function readMarks(text: string, count: number): WrittenObjects {
  const contents = new Map<number, string>();
  const trees: string[] = Array.from({ length: count }, () => "");
  for (const line of text.split("\n")) {
    const [mark = "", id] = line.split(" ");
    const number = Number(mark.slice(1));
    if (id === undefined) continue;
    if (number >= MARK_OF_TREES) trees[number - MARK_OF_TREES] = id;
    else contents.set(number, id);
  }
  return { trees, contents };
}
