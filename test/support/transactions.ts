/** Projects to apply changes to, and exact descriptions of them. */
import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { CellHost } from "../../src/base/host/cell-host.ts";
import type { FieldList, Fields } from "../../src/base/host/frames.ts";
import type { MergedChange } from "../../src/machine/merge/three-way.ts";
import { type ApplyRequest, type LateEdit, Transactions } from "../../src/work/promotion/transaction.ts";
import { expect } from "vitest";
import { keepContent } from "./contents.ts";
import { memoryFolder } from "./folders.ts";
import { sanitizedCell } from "./sanitized-cell.ts";

/** What a path holds: text of a file, `*` before that of an executable one, `->` before the target of a link. */
type Held = string | null;

export class TransactionLab {
  readonly folder: string;
  readonly project: string;
  readonly state: string;
  readonly contents: string;
  readonly reached: string[] = [];
  readonly at = new Map<string, () => void>();
  host: CellHost;
  transactions: Transactions;
  #changes: MergedChange[] = [];

  constructor(where: "memory" | "disk" = "memory", parent = where === "memory" ? memoryFolder() : tmpdir()) {
    this.folder = realpathSync(mkdtempSync(join(parent, "viv-transaction-")));
    this.project = join(this.folder, "project");
    this.state = join(this.folder, "state");
    this.contents = join(this.folder, "contents");
    mkdirSync(join(this.project, ".git"), { recursive: true });
    mkdirSync(this.contents);
    chmodSync(this.project, 0o755);
    this.host = new CellHost({ program: sanitizedCell() });
    this.transactions = this.#open();
  }

  #open(): Transactions {
    return new Transactions(this.host, this.state, (point) => {
      this.reached.push(point);
      this.at.get(point)?.();
    });
  }

  /** Another server on the same folder. */
  async restart(host = new CellHost({ program: sanitizedCell() })): Promise<Transactions> {
    await this.host.close();
    this.at.clear();
    this.host = host;
    this.transactions = this.#open();
    return this.transactions;
  }

  async close(): Promise<void> {
    await this.host.close();
    rmSync(this.folder, { recursive: true, force: true });
  }

  path(name: string | Buffer): string {
    return join(this.project, typeof name === "string" ? name : name.toString());
  }

  put(name: string, held: string): void {
    mkdirSync(dirname(this.path(name)), { recursive: true });
    if (held.startsWith("->")) symlinkSync(held.slice(2), this.path(name));
    else writeFileSync(this.path(name), textOf(held), { mode: held.startsWith("*") ? 0o755 : 0o644 });
    if (!held.startsWith("->")) utimesSync(this.path(name), 1_600_000_000, 1_600_000_000.5);
  }

  /** A change of a path; what it holds before is put there unless it is said to be there. */
  change(name: string, old: Held, now: Held, there = false): void {
    if (old !== null && !there) this.put(name, old);
    this.#changes.push({ path: Buffer.from(name), old: this.#store(old), new: this.#store(now) });
  }

  request(id = "t1"): ApplyRequest {
    return { id, project: this.project, contents: this.contents, changes: this.#changes };
  }

  /** The same change the other way round. */
  reversed(id: string): ApplyRequest {
    return { ...this.request(id), changes: this.#changes.map((each) => ({ path: each.path, old: each.new, new: each.old })) };
  }

  #store(held: Held): MergedChange["old"] {
    if (held === null) return null;
    const bytes = Buffer.from(textOf(held));
    const id = createHash("sha1").update(`blob ${bytes.length}\0`).update(bytes).digest("hex");
    keepContent(this.contents, id, bytes);
    return { id, mode: held.startsWith("->") ? "120000" : held.startsWith("*") ? "100755" : "100644" };
  }

  /** Every path of the project with all that can be seen of it; staging folders too, if any is left. */
  seen(): Map<string, string> {
    return describeFolder(this.project);
  }

  give(uid: number, gid: number): void {
    for (const name of ["", ...this.seen().keys()]) lchownSync(join(this.project, name), uid, gid);
  }

  /** What `apply` must make of the project. */
  holds(name: string): Held {
    if (!existsSync(dirname(this.path(name)))) return null;
    const status = lstatSync(this.path(name), { throwIfNoEntry: false });
    if (status === undefined || status.isDirectory()) return null;
    if (status.isSymbolicLink()) return `->${readlinkSync(this.path(name))}`;
    return `${(status.mode & 0o100) === 0 ? "" : "*"}${readFileSync(this.path(name), "latin1")}`;
  }

  /** Applies the change in a process of its own that kills itself at a point; tells how it ended. */
  applyInChild(crashAt: string, request = this.request()): NodeJS.Signals | null {
    const changes = request.changes.map((change) => ({ ...change, path: change.path.toString("base64") }));
    const file = join(this.folder, "child.json");
    writeFileSync(file, JSON.stringify({ ...request, changes, state: this.state, cell: sanitizedCell(), crashAt }));
    return spawnSync(process.execPath, [join(import.meta.dirname, "transaction-child.ts"), file], { stdio: "inherit" }).signal;
  }

  expectHeld(after: Readonly<Record<string, Held>>): void {
    for (const [name, held] of Object.entries(after)) expect(this.holds(name), JSON.stringify(name)).toBe(held);
  }

  async expectUnchanged(before: ReadonlyMap<string, string>, ...except: readonly string[]): Promise<void> {
    const rest = (seen: ReadonlyMap<string, string>): unknown => new Map([...seen].filter(([name]) => !except.includes(name)));
    expect(rest(this.seen())).toEqual(rest(before));
    expect(await this.leftovers()).toEqual([]);
  }

  async leftovers(): Promise<string[]> {
    return [...[...this.seen().keys()].filter((name) => name.includes("vivarium-")), ...(await this.transactions.pending())];
  }
}

function textOf(held: string): string {
  if (held.startsWith("->")) return held.slice(2);
  return held.startsWith("*") ? held.slice(1) : held;
}

function describeFolder(folder: string, below = ""): Map<string, string> {
  const found = new Map<string, string>();
  for (const name of readdirSync(join(folder, below)).toSorted()) {
    const path = join(below, name);
    const status = lstatSync(join(folder, path), { bigint: true });
    const who = `${status.mode.toString(8)} ${status.uid}:${status.gid}`;
    if (status.isDirectory()) {
      found.set(path, who);
      for (const [inner, what] of describeFolder(folder, path)) found.set(inner, what);
    } else {
      const content = status.isSymbolicLink() ? readlinkSync(join(folder, path)) : readFileSync(join(folder, path), "latin1");
      found.set(path, `${who} ${status.ino} ${status.mtimeNs} ${content}`);
    }
  }
  return found;
}

/** One change of every kind, among files that stay. */
export function everyKind(lab: TransactionLab): Record<string, Held> {
  lab.put("untouched/file", "stays\n");
  lab.put("untouched/run", "*stays\n");
  const after: Record<string, [Held, Held]> = {
    "a.txt": ["one\n", "two\n"],
    "src/main.js": ["1", "2"],
    "src/run.sh": ["echo\n", "*echo\n"],
    "untouched/gone": ["x", null],
    "gone/deep/one": ["1", null],
    "gone/two": ["2", null],
    "new/deep/file": [null, "new\n"],
    "new/tool": [null, "*new\n"],
    "new/link": [null, "->deep/file"],
    link: ["->a.txt", "->src/main.js"],
    "becomes-link": ["file", "->a.txt"],
    "was-link": ["->a.txt", "file"],
    empty: ["something", ""],
    "line\nbreak": ["1", "2"],
    "-rf": [null, "dash"],
    "\u0001\u001f\u202e": [null, "control"],
  };
  for (const [name, [old, now]] of Object.entries(after)) lab.change(name, old, now);
  lab.change("file-to-folder", "file", null);
  lab.change("file-to-folder/inside", null, "inside");
  lab.change("folder-to-file/inside", "inside", null);
  lab.change("folder-to-file", null, "file");
  lab.change("folder-to-link/inside/deep", "inside", null);
  lab.change("folder-to-link", null, "->a.txt");
  lab.change("link-to-folder", "->src", null);
  lab.change("link-to-folder/inside", null, "inside");
  return {
    ...Object.fromEntries(Object.entries(after).map(([name, [, now]]) => [name, now])),
    "file-to-folder/inside": "inside",
    "folder-to-file": "file",
    "folder-to-link": "->a.txt",
    "link-to-folder/inside": "inside",
    "untouched/file": "stays\n",
    "untouched/run": "*stays\n",
  };
}

/** A cell host whose steps can be told to go wrong. */
export class FaultyHost extends CellHost {
  readonly #more: Readonly<Record<string, FieldList>>;
  readonly #dieBefore: string | undefined;
  readonly #dieAfter: string | undefined;

  constructor(more: Readonly<Record<string, FieldList>>, die: { before?: string; after?: string } = {}) {
    super({ program: sanitizedCell() });
    this.#more = more;
    this.#dieBefore = die.before;
    this.#dieAfter = die.after;
  }

  override async request(operation: string, fields: FieldList = []): Promise<Fields> {
    if (operation === this.#dieBefore) process.kill(this.pid ?? 0, "SIGKILL");
    const reply = await super.request(operation, [...(this.#more[operation] ?? []), ...fields]);
    if (operation === this.#dieAfter) process.kill(this.pid ?? 0, "SIGKILL");
    return reply;
  }
}

/** Its step ends right after a rename, and it ends itself before anything can be brought back. */
export function dyingHost(entry: number): FaultyHost {
  return new FaultyHost({ "apply.carry": [["halt", String(entry)]] }, { before: "apply.back" });
}

/** Also while a step that has answered is still ending. */
export function unmount(folder: string): void {
  execFileSync("umount", ["-l", folder]);
}

export function words(conflicts: readonly LateEdit[]): string[] {
  return conflicts.map(({ path, what }) => `${path.toString()} ${what}`).toSorted();
}
