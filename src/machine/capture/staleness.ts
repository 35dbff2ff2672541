/** How far a base is behind reality. */
import { join, relative } from "node:path";
import type { CellHost } from "../../base/host/cell-host.ts";
import { splitParts } from "../../base/host/frames.ts";
import type { Staleness } from "../../base/schema/files.ts";
import type { Base } from "../../base/store/rows.ts";
import type { Roots } from "./roots.ts";
import { scopeFields } from "./syncing.ts";

type Change = Staleness["changes"][number];

const STATUS: Readonly<Record<string, Change["status"]>> = { A: "added", M: "changed", D: "deleted" };
const MOST = 1000;

export async function compareWithReality(
  host: CellHost,
  base: Base,
  manifests: string,
  { roots }: Roots,
  skipped: (root: { path: string; slot: number }) => readonly string[],
): Promise<Staleness> {
  const changes = new Map<string, Change>();
  const project = base.roots.find((root) => root.slot === 0)?.path ?? "/";
  let cut = false;
  for (const { path, slot, taken } of base.roots) {
    if (taken === true) continue;
    const root = roots.find((found) => found.path === path) ?? { kind: "data" as const };
    const reply = await host.request("compare", [
      ["source", path],
      ["manifest", `${manifests}${slot}`],
      ...scopeFields(root, skipped({ path, slot })),
    ]);
    cut ||= reply.flag("cut");
    for (const row of reply.rawAll("row")) {
      const [kind, name] = splitParts(row, 2).map((part) => part.toString());
      const change = describe(kind ?? "", join(relative(project, path), name ?? ""), root.kind === "git");
      if (change !== undefined) changes.set(change.path, change);
    }
  }
  const all = [...changes.values()].toSorted((one, other) => (one.path < other.path ? -1 : 1));
  const takenAt = base.takenAt;
  return {
    takenAt,
    ageMs: Math.max(0, Date.now() - Date.parse(takenAt)),
    stale: all.length > 0,
    changes: all.slice(0, MOST),
    more: cut || all.length > MOST,
  };
}

/** Git's own files are one change, and only when a branch or HEAD moved: `git status` alone rewrites the index. */
function describe(kind: string, path: string, gitRoot: boolean): Change | undefined {
  const inside = /^(?:(.*)\/)?\.git(?:\/(.*))?$/.exec(path);
  if (inside === null && !gitRoot) return path === "." || path === "" ? undefined : { path, status: STATUS[kind] ?? "changed" };
  const rest = inside?.[2] ?? "";
  if (!/^(HEAD|packed-refs|refs\/(?!remotes\/).*)$/.test(gitRoot ? path.replace(/^.*\/\.git\//, "") : rest)) return undefined;
  return { path: join(inside?.[1] ?? "", ".git"), status: "changed" };
}
