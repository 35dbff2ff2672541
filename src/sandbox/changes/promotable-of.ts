/** The promotable change of a sandbox, taken from a frozen state of it. */
import { existsSync } from "node:fs";
import { git } from "../../machine/capture/git.ts";
import {
  gatherPromotable,
  promotable,
  type GatheredPromotable,
  type Promotable,
  type PromotableRequest,
  type PromotableOptions,
} from "../../machine/merge/promotable.ts";
import type { GitStore } from "../../machine/merge/store.ts";
import type { FolderSides } from "../../machine/volumes/comparison.ts";
import type { SandboxRow } from "../../base/store/rows.ts";
import { comparedBase } from "../projects/bases.ts";
import type { Parts } from "../shared/parts.ts";
import { outerRules } from "./outer-ignore-rules.ts";

type ComparedRow = Pick<SandboxRow, "driver" | "base" | "refreshedTo" | "project">;
type ChosenOptions = Pick<PromotableRequest, "include" | "only" | "protects" | "onTouched">;

/** With all its contents in the store. */
export async function promotableOf(
  parts: Pick<Parts, "backends">,
  row: ComparedRow,
  snapshot: string,
  store: GitStore,
  options: ChosenOptions,
): Promise<Promotable> {
  return promotable(store, await requestOf(parts, row, snapshot, options));
}

/** With its contents where they were gathered, below the store's folder. */
export async function gatheredPromotableOf(
  parts: Pick<Parts, "backends">,
  row: ComparedRow,
  snapshot: string,
  store: GitStore,
  options: ChosenOptions,
): Promise<GatheredPromotable> {
  return gatherPromotable(store, await requestOf(parts, row, snapshot, options));
}

async function requestOf(
  parts: Pick<Parts, "backends">,
  row: ComparedRow,
  snapshot: string,
  options: ChosenOptions,
): Promise<PromotableRequest> {
  const { storage, gather } = parts.backends.of(row);
  const sides = await storage.comparison.sides({ snapshot }, comparedBase(row));
  return { gather, ...sortingOf(parts, row, sides), ...options };
}

/** What sorts the change of a sandbox, whatever state of it is compared. */
export function sortingOf(
  parts: Pick<Parts, "backends">,
  row: Pick<SandboxRow, "driver" | "project">,
  sides: FolderSides,
): PromotableOptions {
  return {
    takeOut: parts.backends.of(row).takeOut,
    sides,
    outer: () => outerRules(row.project),
    tracked: () => trackedThoughIgnored(row.project),
    include: [],
  };
}

/** Files that the ignore rules name and git holds all the same: those were never ignored. */
async function trackedThoughIgnored(project: string): Promise<ReadonlySet<string>> {
  if (!existsSync(project)) return new Set();
  const { code, stdout } = await git(project, ["ls-files", "--cached", "--ignored", "--exclude-standard", "-z"]);
  return new Set(code === 0 ? stdout.toString("latin1").split("\0").slice(0, -1) : []);
}
