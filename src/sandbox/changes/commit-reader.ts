/** Commits that frozen copies of a project are on, read from their files without running git. */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { VivError } from "../../base/schema/errors.ts";
import type { SandboxRow } from "../../base/store/rows.ts";
import { comparedBase } from "../projects/bases.ts";
import type { Parts } from "../shared/parts.ts";
import type { Backend } from "../../machine/backends.ts";

const COMMIT = /^[0-9a-f]{40,64}$/;
const BRANCH = /^refs\/heads\/[\w./-]+$/;
const MODULE = /^\s*\[submodule "([\w./-]+)"\]\s*$/;

/** Reads single files out of layers, the topmost that has one. */
export class CommitReader {
  readonly #backend: Backend;
  readonly #folder: string;
  #taken = 0;

  constructor(backend: Backend, folder: string) {
    this.#backend = backend;
    this.#folder = folder;
  }

  async read(layers: readonly string[], path: string): Promise<string> {
    for (const layer of layers) {
      this.#taken += 1;
      const target = join(this.#folder, String(this.#taken));
      const taken = await this.#backend.takeOut(layer, [{ path, target }]);
      if (taken.has(path)) return (await readFile(target, "utf8")).trim();
    }
    return "";
  }

  /** The commit that HEAD is in a repository's folder; null where that is not known. */
  async commit(layers: readonly string[], repository: string): Promise<string | null> {
    const head = await this.read(layers, `${repository}/HEAD`);
    const branch = head.startsWith("ref: ") ? head.slice(5) : "";
    if (branch === "") return COMMIT.test(head) ? head : null;
    if (!BRANCH.test(branch) || branch.includes("..")) return null;
    const loose = await this.read(layers, `${repository}/${branch}`);
    if (COMMIT.test(loose)) return loose;
    const packed = (await this.read(layers, `${repository}/packed-refs`)).split("\n").find((line) => line.endsWith(` ${branch}`));
    const found = packed?.split(" ")[0] ?? "";
    return COMMIT.test(found) ? found : null;
  }
}

export async function withCommitReader<T>(backend: Backend, temporary: string, work: (reader: CommitReader) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(temporary, "head-"));
  try {
    return await work(new CommitReader(backend, folder));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

export interface RepositoryState {
  /** Of the reality that the sandbox is compared with. */
  readonly base: string | null;
  /** Whether commits were made, or others checked out, inside. */
  readonly moved: boolean;
  /** Submodules that are on another commit inside. */
  readonly submodules: readonly string[];
}

/** How the repository of a frozen state stands to the base it came from. */
export async function repositoryState(
  parts: Pick<Parts, "backends">,
  row: SandboxRow,
  snapshot: string,
  temporary: string,
): Promise<RepositoryState> {
  const backend = parts.backends.of(row);
  const compared = await backend.storage.comparison.sides({ snapshot }, comparedBase(row));
  // A refresh leaves the repository inside as it was: it is compared with the one it came from.
  const made = await backend.storage.comparison.sides({ snapshot }, row.base);
  const now = made.overlay ? [made.new, ...made.old] : [made.new];
  return withCommitReader(backend, temporary, async (reader) => {
    const differs = async (repository: string): Promise<boolean> =>
      (await reader.commit(made.old, repository)) !== (await reader.commit(now, repository));
    const names = modulesIn(await reader.read(made.old, ".gitmodules"));
    const moved: string[] = [];
    for (const name of names) if (await differs(`.git/modules/${name}`)) moved.push(name);
    return {
      base: await reader.commit(compared.before?.base ?? compared.old, ".git"),
      moved: await differs(".git"),
      submodules: moved,
    };
  });
}

export function requireCommit({ base }: RepositoryState): string {
  if (base !== null) return base;
  throw new VivError("unsupported", "The clone saw no commit to put a branch on.", { remedy: "Commit once, then clone again." });
}

function modulesIn(text: string): string[] {
  return text.split("\n").flatMap((line) => {
    const name = MODULE.exec(line)?.[1];
    return name === undefined || name.split("/").includes("..") ? [] : [name];
  });
}
