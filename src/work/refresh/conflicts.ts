/** What a sandbox keeps and gets where its changes and reality's can't both be kept. */
import type { ChangeSet } from "../../machine/merge/change-set.ts";
import type { Conflict } from "../../machine/merge/merge.ts";
import type { MergedChange, ThreeWay } from "../../machine/merge/three-way.ts";
import type { RefreshConflict } from "../../base/schema/files.ts";
import { decodePath, encodePath } from "../../base/schema/path-bytes.ts";

export interface ResolvedMerge {
  readonly changes: readonly MergedChange[];
  readonly conflicts: readonly RefreshConflict[];
}

/** Git marks texts and keeps what stands in each other's way under two names; everything else stays as the sandbox has it. */
export function resolveMerge({ changes, conflicts }: ThreeWay): ResolvedMerge {
  const left = conflicts.filter(({ kind }) => kind === "binary" || kind === "delete/edit");
  const stays = new Set(left.flatMap(({ paths }) => paths.slice(0, 1).map((path) => path.toString("latin1"))));
  const beside = left.flatMap(({ paths: [path], theirs }) =>
    path === undefined || theirs === null ? [] : [{ path: besideOf(path), old: null, new: theirs }],
  );
  return {
    changes: [...changes.filter(({ path }) => !stays.has(path.toString("latin1"))), ...beside],
    conflicts: conflicts.map(tell),
  };
}

/** A file that a program inside changed meanwhile stays; reality's version comes beside it. */
export function settleLate(paths: readonly string[], reality: ChangeSet): ResolvedMerge {
  const found = paths.map((path) => {
    const theirs = reality.changes.get(encodePath(path).toString("latin1"))?.new ?? null;
    const at = theirs === null ? null : besideOf(encodePath(path));
    return {
      changes: theirs === null || at === null ? [] : [{ path: at, old: null, new: { mode: theirs.mode, id: String(theirs.content) } }],
      conflict: {
        path,
        kind: "late edit",
        message: "It was changed inside during the refresh, and is as it was left there.",
        reality: at === null ? null : decodePath(at),
      },
    };
  });
  return { changes: found.flatMap(({ changes }) => changes), conflicts: found.map(({ conflict }) => conflict) };
}

function besideOf(path: Buffer): Buffer {
  return Buffer.concat([path, Buffer.from(".reality")]);
}

function tell({ kind, paths, message, ours, theirs }: Conflict): RefreshConflict {
  const [first = Buffer.alloc(0)] = paths;
  const path = decodePath(first);
  const reality = (kind === "binary" || kind === "delete/edit") && theirs !== null ? decodePath(besideOf(first)) : null;
  const say = (text: string): RefreshConflict => ({ path, kind, message: text, reality });
  if (kind === "content") return say("Both changed the same lines: they are marked in the file.");
  if (kind === "binary") return say(`Both changed it, and it is no text: the sandbox's version stays, reality's is ${reality}.`);
  if (kind === "delete/edit" && ours === null) return say(`Deleted inside, changed in reality: reality's version is ${reality}.`);
  if (kind === "delete/edit") return say("Changed inside, deleted in reality: the sandbox's version stays.");
  return say(message);
}
