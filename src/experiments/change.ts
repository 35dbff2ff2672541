/** The promotable change of an attempt, taken from the state it left. */
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { writeContents } from "../merge/contents.ts";
import { asMerged, type LeftOut } from "../merge/promotable.ts";
import { GitStore, type TreeEntry } from "../merge/store.ts";
import type { MergedChange } from "../merge/three-way.ts";
import type { StoredChange } from "../merge/change-set.ts";
import type { DiffStat } from "../schema/experiment.ts";
import type { Parts } from "../sandbox/parts.ts";
import { promotableOf } from "../sandbox/promotable-of.ts";
import type { SandboxRow } from "../store/store.ts";

export interface AttemptChange {
  readonly changes: readonly MergedChange[];
  readonly leftOut: readonly LeftOut[];
  /** Size in files and lines. */
  diff(): Promise<DiffStat>;
  /** Writes the contents that these changes bring into a folder that goes with close(). */
  contents(of: readonly MergedChange[]): Promise<string>;
  /** A content as text. */
  text(id: string): Promise<string>;
  /** Keeps a text of ours among the contents; answers with its id. */
  hold(text: string): Promise<string>;
  close(): Promise<void>;
}

export async function changeOf(
  parts: Parts,
  row: SandboxRow,
  snapshot: string,
  include: readonly string[],
  temporary: string,
): Promise<AttemptChange> {
  const store = await GitStore.open(temporary);
  try {
    const { changes, leftOut } = await promotableOf(parts, row, snapshot, store, { include });
    return {
      changes: asMerged(changes),
      leftOut,
      diff: () => diffStat(store, [...changes.changes.values()]),
      contents: (of) => contentsOf(store, of),
      text: async (id) => (await store.git(["cat-file", "blob", id])).stdout.toString("utf8"),
      hold: async (text) => (await store.git(["hash-object", "-w", "--stdin"], { input: [Buffer.from(text)] })).stdout.toString().trim(),
      close: () => store.close(),
    };
  } catch (error) {
    await store.close();
    throw error;
  }
}

async function contentsOf(store: GitStore, changes: readonly MergedChange[]): Promise<string> {
  const folder = await mkdtemp(join(store.folder, "contents-"));
  try {
    await writeContents(
      store,
      changes.flatMap((change) => change.new?.id ?? []),
      folder,
    );
    return folder;
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}

async function diffStat(store: GitStore, changes: readonly StoredChange[]): Promise<DiffStat> {
  if (changes.length === 0) return { files: 0, added: 0, removed: 0 };
  const side = (which: "old" | "new"): TreeEntry[] => changes.flatMap((change) => change[which] ?? []);
  const { trees } = await store.write([{ entries: side("old") }, { entries: side("new") }]);
  const { stdout } = await store.git(["diff-tree", "-r", "-M", "--numstat", trees[0] ?? "", trees[1] ?? ""]);
  const stat = { files: 0, added: 0, removed: 0 };
  for (const line of stdout.toString("latin1").split("\n")) {
    const [added, removed, path] = line.split("\t");
    if (path === undefined) continue;
    stat.files += 1;
    stat.added += Number(added) || 0;
    stat.removed += Number(removed) || 0;
  }
  return stat;
}
