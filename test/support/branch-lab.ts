/** A real repository with a user's home, and changes as a sandbox's diff gives them. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { MergedChange } from "../../src/machine/merge/three-way.ts";
import { prepareBranch, type BranchCommits, type BranchConflict, type BranchRequest } from "../../src/work/promotion/branch.ts";

import { keepContent } from "./contents.ts";
import { memoryFolder } from "./folders.ts";

/** A side of a change: nothing, the bytes of a file, or bytes with a mode. */
type Side = string | Buffer | null | { readonly mode: string; readonly bytes: string | Buffer };

export class BranchLab {
  readonly place = mkdtempSync(join(memoryFolder(), "viv-branch-"));
  readonly home = join(this.place, "home");
  readonly project = join(this.place, "project");
  readonly #contents = join(this.place, "contents");
  readonly temporary = join(this.place, "temporary");

  constructor(init: readonly string[] = []) {
    for (const folder of [this.home, this.project, this.#contents, this.temporary]) mkdirSync(folder);
    writeFileSync(join(this.home, ".gitconfig"), "[user]\n\tname = Ada User\n\temail = ada@example.com\n[init]\n\tdefaultBranch = main\n");
    this.git("init", "-q", ...init);
  }

  get variables(): Record<string, string> {
    return { HOME: this.home };
  }

  /** The user's own git, in the project. */
  git(...args: readonly string[]): string {
    return this.gitIn(this.project, ...args);
  }

  gitIn(folder: string, ...args: readonly string[]): string {
    return execFileSync("git", ["-C", folder, ...args], {
      env: this.environment,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
    }).trim();
  }

  get environment(): Record<string, string> {
    return { PATH: process.env["PATH"] ?? "", HOME: this.home, GIT_CONFIG_NOSYSTEM: "1", LC_ALL: "C" };
  }

  write(files: Readonly<Record<string, string | Buffer>>, folder = this.project): void {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), text);
    }
  }

  /** Commits everything with the user's git; the commit's id. */
  commit(message: string): string {
    this.git("add", "-A");
    this.git("commit", "-q", "-m", message);
    return this.git("rev-parse", "HEAD");
  }

  change(path: string | Buffer, old: Side, now: Side): MergedChange {
    return { path: Buffer.from(path as string), old: this.#side(old), new: this.#side(now) };
  }

  #side(side: Side): { mode: string; id: string } | null {
    if (side === null) return null;
    const { mode, bytes } = typeof side === "string" || Buffer.isBuffer(side) ? { mode: "100644", bytes: side } : side;
    const content = Buffer.from(bytes as string);
    const id = createHash("sha1").update(`blob ${content.length}\0`).update(content).digest("hex");
    keepContent(this.#contents, id, content);
    return { mode, id };
  }

  request(parent: string, changes: readonly MergedChange[], more: Partial<BranchRequest> = {}): BranchRequest {
    return {
      project: this.project,
      temporary: this.temporary,
      contents: this.#contents,
      parent,
      changes,
      branch: "fix/it",
      message: "Fix it",
      variables: this.variables,
      ...more,
    };
  }

  /** Every byte, mode and time of checkout and git folder, but for objects and the new branches. */
  fingerprint(folder = this.project): string[] {
    const found: string[] = [];
    const walk = (path: string): void => {
      for (const name of readdirSync(join(folder, path))) {
        const below = join(path, name);
        const status = lstatSync(join(folder, below), { bigint: true });
        if (/^\.git\/(objects|(logs\/)?refs\/heads)$/.test(below)) continue;
        if (status.isDirectory()) walk(below);
        else {
          const bytes = status.isSymbolicLink() ? Buffer.from(readlinkSync(join(folder, below))) : readFileSync(join(folder, below));
          const hash = createHash("sha256").update(bytes).digest("hex");
          found.push(`${below} ${status.mode} ${status.mtimeNs} ${status.ctimeNs} ${status.ino} ${hash}`);
        }
      }
    };
    walk("");
    return found.toSorted();
  }

  /** What a tree-ish holds. */
  list(tree: string, folder = this.project): string[] {
    return this.gitIn(folder, "ls-tree", "-r", "--full-tree", "--format=%(objectmode) %(path)", tree).split("\n");
  }

  show(object: string): Buffer {
    return execFileSync("git", ["-C", this.project, "cat-file", "blob", object], { env: this.environment });
  }

  close(): void {
    rmSync(this.place, { recursive: true, force: true });
  }
}

/** Makes the branch at once. */
export async function createBranch(request: BranchRequest): Promise<BranchCommits | Omit<BranchConflict, "contents">> {
  const prepared = await prepareBranch(request);
  try {
    if (prepared.outcome === "ready") await prepared.publish();
    return prepared;
  } finally {
    await prepared.close();
  }
}
