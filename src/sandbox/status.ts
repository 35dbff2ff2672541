/** How a sandbox stands to reality: what moved there since the clone, and what of it the sandbox changed, too. */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { git } from "../capture/git.ts";
import { diffNames } from "../merge/diff.ts";
import type { SandboxStatus, Staleness } from "../schema/files.ts";
import type { SandboxRow } from "../store/store.ts";
import { comparedBase, openBase } from "./bases.ts";
import { sidesOf } from "./diff.ts";
import type { Backend, Parts } from "./parts.ts";
import { captureRequest, openProject } from "./projects.ts";

const COMMIT = /^[0-9a-f]{40,64}$/;
const BRANCH = /^refs\/heads\/[\w./-]+$/;

export async function staleness(parts: Parts, row: SandboxRow): Promise<Staleness> {
  const base = await openBase(parts.store, row, comparedBase(row));
  return parts.backends.of(row).capture.staleness(base, captureRequest(await openProject(parts.store, row.project, parts.state)));
}

export async function sandboxStatus(parts: Parts, row: SandboxRow, temporary: string): Promise<SandboxStatus> {
  const backend = parts.backends.of(row);
  const stale = await staleness(parts, row);
  const own = await diffNames({ gather: backend.gather, temporary }, await sidesOf(backend, row));
  const mine = new Set(own.entries.map(({ path }) => path));
  return {
    ...stale,
    id: row.id,
    name: row.name,
    state: row.state,
    commits: await commitsSince(backend, row, temporary),
    changes: stale.changes.map((change) => ({ ...change, changedInside: mine.has(change.path) })),
    changedInside: own.entries.filter(({ type }) => type !== "dir").length,
    more: stale.more || own.more,
  };
}

/** Commits that the project's HEAD has and the base's had not; null where that can't be told. */
async function commitsSince(backend: Backend, row: SandboxRow, temporary: string): Promise<number | null> {
  const { old, before } = await sidesOf(backend, row);
  const folder = await mkdtemp(join(temporary, "head-"));
  try {
    const head = await commitOf(backend, before?.base ?? old, join(folder, "head-"));
    if (head === null) return null;
    const { code, stdout } = await git(row.project, ["rev-list", "--count", `${head}..HEAD`, "--"]);
    return code === 0 ? Number(stdout.toString()) : null;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** HEAD of the base and of a state of the sandbox, told without asking git; null where that can't be told. */
export async function headOf(
  parts: Parts,
  row: SandboxRow,
  of: { readonly snapshot: string },
): Promise<{ before: string | null; now: string | null }> {
  const backend = parts.backends.of(row);
  const sides = await backend.volumes.sides(of, comparedBase(row), 0);
  const folder = await mkdtemp(join(parts.state, "tmp", "head-"));
  try {
    const layers = sides.overlay ? [sides.new, ...sides.old] : [sides.new];
    return {
      before: await commitOf(backend, sides.before?.base ?? sides.old, join(folder, "before-")),
      now: await commitOf(backend, layers, join(folder, "now-")),
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The commit that HEAD is in a frozen copy of the project. */
async function commitOf(backend: Backend, layers: readonly string[], prefix: string): Promise<string | null> {
  let taken = 0;
  const read = async (path: string): Promise<string> => {
    for (const layer of layers) {
      taken += 1;
      const target = `${prefix}${taken}`;
      if (await backend.takeOut(layer, path, target)) return (await readFile(target, "utf8")).trim();
    }
    return "";
  };
  const head = await read(".git/HEAD");
  const branch = head.startsWith("ref: ") ? head.slice(5) : "";
  if (branch === "") return COMMIT.test(head) ? head : null;
  if (!BRANCH.test(branch) || branch.includes("..")) return null;
  const loose = await read(`.git/${branch}`);
  if (COMMIT.test(loose)) return loose;
  const packed = (await read(".git/packed-refs")).split("\n").find((line) => line.endsWith(` ${branch}`));
  const found = packed?.split(" ")[0] ?? "";
  return COMMIT.test(found) ? found : null;
}
