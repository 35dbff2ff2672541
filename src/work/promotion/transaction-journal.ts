/** The state folder of transactions: one folder each, whose files say how far it got. Every step that counts is durable. */
import { mkdir, open, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { splitParts } from "../../base/host/frames.ts";
import { VivError } from "../../base/schema/errors.ts";
import type { LinkedFiles } from "./hard-links.ts";
import type { EncodedList, FileAttributes } from "./transaction-entries.ts";

/**
 * How far a transaction got. `begun`: at most a staging folder is in the project. `journalled`: files may have been exchanged.
 * `committed`: all are, and only the staging folder is left to remove.
 */
export type Progress = "none" | "begun" | "journalled" | "committed" | "finished";

/** What is needed to go on after a crash. */
export interface StartedTransaction {
  readonly project: string;
  readonly contents: string;
}

const ID = /^[a-z0-9]{1,64}$/;

export class TransactionJournal {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  place(id: string): string {
    if (!ID.test(id)) throw new VivError("internal", "The id of a transaction is made of a-z and 0-9.");
    return join(this.#folder, id);
  }

  /** The staging folder of a finished transaction, until it is removed. */
  aside(id: string): string {
    return join(this.place(id), "aside");
  }

  async hasAside(id: string): Promise<boolean> {
    return exists(this.aside(id));
  }

  async ids(): Promise<string[]> {
    try {
      return (await readdir(this.#folder)).filter((name) => ID.test(name)).toSorted();
    } catch (error) {
      if (isMissing(error)) return [];
      throw error;
    }
  }

  async begin(id: string, begun: StartedTransaction, { list, twins }: Pick<EncodedList, "list" | "twins">): Promise<void> {
    const place = this.place(id);
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    await mkdir(place, { mode: 0o700 });
    await writeFile(join(place, "list"), list, { mode: 0o600 });
    if (twins.length > 0) await writeFile(join(place, "twins"), twins, { mode: 0o600 });
    await writeDurably(join(place, "begun"), Buffer.from(JSON.stringify(begun)));
    await syncFolder(place);
    await syncFolder(this.#folder);
  }

  /** A folder without what was begun is one in which nothing was. */
  async begun(id: string): Promise<StartedTransaction | undefined> {
    try {
      return JSON.parse(await readFile(join(this.place(id), "begun"), "utf8")) as StartedTransaction;
    } catch (error) {
      if (isMissing(error) || error instanceof SyntaxError) return undefined;
      throw error;
    }
  }

  async progress(id: string): Promise<Progress> {
    for (const [name, progress] of [
      ["finished", "finished"],
      ["committed", "committed"],
      ["journal", "journalled"],
      ["", "begun"],
    ] as const)
      if (await exists(join(this.place(id), name))) return progress;
    return "none";
  }

  /** The cell has written and synced it under another name. */
  async seal(id: string): Promise<void> {
    const place = this.place(id);
    await rename(join(place, "journal.new"), join(place, "journal"));
    await syncFolder(place);
  }

  async commit(id: string): Promise<void> {
    await writeDurably(join(this.place(id), "committed"), Buffer.alloc(0));
    await syncFolder(this.place(id));
  }

  /** Not synced, as that would wait for the removal of every staged file: a finish that is lost is found again. */
  async finish(id: string): Promise<void> {
    await writeFile(join(this.place(id), "finished"), "");
  }

  /** Of every file that was replaced or deleted, by its path as latin1. */
  async taken(id: string): Promise<Map<string, FileAttributes>> {
    const rows = threeParts(await readFile(join(this.place(id), "taken")));
    return new Map(rows.map(([mode, mtime, path]) => [path, { mode: Number.parseInt(mode, 8), mtimeNs: BigInt(mtime) }]));
  }

  /** Of those that had other names; none where nothing was written down about that. */
  async links(id: string): Promise<LinkedFiles> {
    try {
      const rows = threeParts(await readFile(join(this.place(id), "links")));
      return new Map(rows.map(([inode, names, path]) => [path, { inode: BigInt(inode), names: Number(names) }]));
    } catch (error) {
      if (isMissing(error)) return new Map();
      throw error;
    }
  }

  /** The journal goes first: what is left of a removal that was cut short has nothing to carry out. */
  async remove(id: string): Promise<void> {
    const place = this.place(id);
    for (const name of ["journal", "committed", "finished"]) await rm(join(place, name), { force: true });
    await rm(place, { recursive: true, force: true });
  }
}

/** Records ended by NUL; the last part is a path, as latin1. */
function threeParts(text: Buffer): [string, string, string][] {
  const rows: [string, string, string][] = [];
  for (let at = 0; at < text.length;) {
    const end = text.indexOf(0, at);
    const [first, second, path] = splitParts(text.subarray(at, end), 3);
    if (first !== undefined && second !== undefined && path !== undefined)
      rows.push([first.toString(), second.toString(), path.toString("latin1")]);
    at = end + 1;
  }
  return rows;
}

async function writeDurably(path: string, content: Buffer): Promise<void> {
  const file = await open(path, "w", 0o600);
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}
