/** How a sandbox stands to reality: what moved there since the clone, and what of it the sandbox changed, too. */
import { git } from "../../machine/capture/git.ts";
import { diffNames } from "../../machine/merge/diff.ts";
import type { SandboxStatus, Staleness } from "../../base/schema/files.ts";
import type { Base, SandboxRow } from "../../base/store/rows.ts";
import { comparedBase, openBase } from "../projects/bases.ts";
import { sidesOf } from "./diff.ts";
import { withCommitReader } from "./commit-reader.ts";
import type { Parts } from "../shared/parts.ts";
import type { Backend } from "../../machine/backends.ts";
import { captureRequest, openProject } from "../projects/projects.ts";

type StatusParts = Pick<Parts, "store" | "backends" | "user" | "state">;

export async function staleness(parts: StatusParts, row: SandboxRow): Promise<Staleness> {
  const base = await openBase(parts.store, row, comparedBase(row));
  // Nothing of reality moves away from it.
  if (row.start !== undefined) return unmoved(base);
  const view = await openProject(parts.store, row.project, parts.state);
  return parts.backends.of(row).capture.staleness(base, captureRequest(view, parts.user));
}

function unmoved({ takenAt }: Base): Staleness {
  return { takenAt, ageMs: Math.max(0, Date.now() - Date.parse(takenAt)), stale: false, changes: [], more: false };
}

export async function sandboxStatus(parts: StatusParts, row: SandboxRow, temporary: string): Promise<SandboxStatus> {
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

/** Commits that the project's HEAD has and the base's had not; null where that is not known. */
async function commitsSince(backend: Backend, row: SandboxRow, temporary: string): Promise<number | null> {
  const { old, before } = await sidesOf(backend, row);
  const head = await withCommitReader(backend, temporary, (commits) => commits.commit(before?.base ?? old, ".git"));
  if (head === null) return null;
  const { code, stdout } = await git(row.project, ["rev-list", "--count", `${head}..HEAD`, "--"]);
  return code === 0 ? Number(stdout.toString()) : null;
}
