/** The promotable change of an attempt, taken from the state it left. */
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { writeContents } from "../../machine/merge/contents.ts";
import { asMerged, type LeftOut, type Promotable, type PromotableRequest } from "../../machine/merge/promotable.ts";
import { GitStore } from "../../machine/merge/store.ts";
import type { MergedChange } from "../../machine/merge/three-way.ts";
import { VivError } from "../../base/schema/errors.ts";
import type { DiffStat } from "../../base/schema/experiment.ts";
import type { Parts } from "../../sandbox/shared/parts.ts";
import { promotableOf } from "../../sandbox/changes/promotable-of.ts";
import type { Splittable } from "../checks/manifest.ts";
import { keptInChange } from "../checks/protection.ts";
import type { ExperimentRow, SandboxRow } from "../../base/store/rows.ts";

type ChangeParts = Pick<Parts, "backends">;

export interface AttemptChange extends Splittable {
  readonly leftOut: readonly LeftOut[];
  /** Size in files and lines. */
  diff(): Promise<DiffStat>;
  /** As text, for readers; undefined where that has more bytes than this. */
  patch(mostBytes: number): Promise<string | undefined>;
  /** Writes the contents that these changes bring into a folder of ours. */
  contents(of: readonly MergedChange[]): Promise<string>;
}

/** A change that is being opened. */
export interface OpeningChange {
  /** Every path that differs, ignored or not; known before the rest. */
  readonly touched: Promise<readonly Buffer[]>;
  readonly change: Promise<AttemptChange>;
  /** Lets go of it, whether it is open yet or not. */
  close(): void;
}

export function openChange(
  parts: ChangeParts,
  row: SandboxRow,
  snapshot: string,
  { input, protect }: Pick<ExperimentRow, "input" | "protect">,
  temporary: string,
): OpeningChange {
  const touched = Promise.withResolvers<readonly Buffer[]>();
  touched.promise.catch(() => undefined);
  const options = { include: input.include, protects: keptInChange(protect), onTouched: touched.resolve };
  const change = changeOf(parts, row, snapshot, options, temporary);
  change.catch(touched.reject);
  const close = (): void => void change.then((opened) => opened.discard()).catch(() => undefined);
  return { touched: touched.promise, change, close };
}

async function changeOf(
  parts: ChangeParts,
  row: SandboxRow,
  snapshot: string,
  options: Pick<PromotableRequest, "include" | "protects" | "onTouched">,
  temporary: string,
): Promise<AttemptChange & { discard(): void }> {
  const store = await GitStore.open(temporary, parts.backends.of(row));
  try {
    const { changes, trees, leftOut } = await promotableOf(parts, row, snapshot, store, options);
    return {
      changes: asMerged(changes),
      leftOut,
      diff: () => diffStat(store, trees),
      patch: (most) => patchOf(store, trees, most),
      contents: (of) => contentsOf(store, of),
      text: async (id) => (await store.git(["cat-file", "blob", id])).stdout.toString("utf8"),
      hold: async (text) => (await store.git(["hash-object", "-w", "--stdin"], { input: [Buffer.from(text)] })).stdout.toString().trim(),
      discard: () => store.discard(),
    };
  } catch (error) {
    store.discard();
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

async function patchOf(store: GitStore, trees: Promotable["trees"], mostBytes: number): Promise<string | undefined> {
  if (trees === undefined) return "";
  try {
    const shown = ["diff-tree", "-r", "-p", "-M", "--no-color", "--no-ext-diff", "--no-textconv", trees.old, trees.new];
    return (await store.git(shown, { maxOutputBytes: mostBytes })).stdout.toString("utf8");
  } catch (error) {
    if (error instanceof VivError) return undefined;
    throw error;
  }
}

/** As many bytes of what is no text count as a line, or a change could hide its size. */
const BYTES_PER_LINE = 80;

async function diffStat(store: GitStore, trees: Promotable["trees"]): Promise<DiffStat> {
  if (trees === undefined) return { files: 0, added: 0, removed: 0 };
  const { stdout } = await store.git(["diff-tree", "-r", "-M", "-z", "--raw", "--numstat", "--no-abbrev", trees.old, trees.new]);
  const { raw, numbers } = readDiff(stdout.toString("latin1").split("\0").slice(0, -1));
  const unread = raw.filter((_, index) => numbers[index]?.[0] === "-" && raw[index]?.old !== raw[index]?.new);
  const sizes = await sizesOf(
    store,
    unread.flatMap(({ old, new: now }) => [old, now]).filter((id) => !/^0+$/.test(id)),
  );
  const lines = (id: string): number => Math.ceil((sizes.get(id) ?? 0) / BYTES_PER_LINE);
  const sum = (counts: readonly number[]): number => counts.reduce((all, count) => all + count, 0);
  return {
    files: numbers.length,
    added: sum([...numbers.map(([added]) => Number(added) || 0), ...unread.map(({ new: now }) => lines(now))]),
    removed: sum([...numbers.map(([, removed]) => Number(removed) || 0), ...unread.map(({ old }) => lines(old))]),
  };
}

/** First `:<modes> <ids> <status>` of every file, then `<added>\t<removed>\t` of every file, each with its names; those hold anything. */
function readDiff(parts: readonly string[]): { raw: { old: string; new: string }[]; numbers: [string, string][] } {
  const raw: { old: string; new: string }[] = [];
  let at = 0;
  while (parts[at]?.startsWith(":") === true) {
    const [, , old = "", now = "", status = ""] = parts[at]?.split(" ") ?? [];
    raw.push({ old, new: now });
    at += /^[RC]/.test(status) ? 3 : 2;
  }
  const numbers: [string, string][] = [];
  while (at < parts.length) {
    const [added = "", removed = "", name = ""] = parts[at]?.split("\t") ?? [];
    numbers.push([added, removed]);
    at += name === "" ? 3 : 1;
  }
  return { raw, numbers };
}

async function sizesOf(store: GitStore, ids: readonly string[]): Promise<Map<string, number>> {
  if (ids.length === 0) return new Map();
  const input = [Buffer.from(`${ids.join("\n")}\n`)];
  const { stdout } = await store.git(["cat-file", "--batch-check=%(objectname) %(objectsize)"], { input });
  const rows = stdout.toString().trim().split("\n");
  return new Map(rows.map((row) => row.split(" ")).map(([id = "", size]) => [id, Number(size)]));
}
