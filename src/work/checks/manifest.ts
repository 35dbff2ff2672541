/** Manifests hold both what an attempt may change and how the tests are run: only the latter is protected. */
import type { MergedChange } from "../../machine/merge/three-way.ts";
import { decodePath } from "../../base/schema/path-bytes.ts";
import { withOriginalRunners } from "./pyproject.ts";
import { protectionOf, splitProtected, type Split } from "./protection.ts";

/** By name: the new text with the old way to run tests, null where it has that already. */
const MANIFESTS: readonly [RegExp, (oldText: string, newText: string) => string | null][] = [
  [/^(?!(.*\/)?node_modules\/)(.*\/)?package\.json$/, withOriginalTests],
  [/(^|\/)pyproject\.toml$/, withOriginalRunners],
];
/** Keys that configure a test runner. */
const RUNNERS = ["jest", "vitest", "mocha", "ava", "nyc", "c8", "tap"];

/** A change whose contents can be read, and added to. */
export interface Splittable {
  readonly changes: readonly MergedChange[];
  /** A content as text. */
  text(id: string): Promise<string>;
  /** Keeps a text of ours among the contents; answers with its id. */
  hold(text: string): Promise<string>;
}

/** Takes the changes of protected files out of a change; of a manifest, by default, those of scripts and test runners. */
export async function splitChange(change: Splittable, patterns: readonly string[] | null): Promise<Split> {
  let split = splitProtected(change.changes, protectionOf(patterns));
  if (patterns !== null) return split;
  for (const one of split.free) {
    const restore = MANIFESTS.find(([name]) => name.test(decodePath(one.path)))?.[1];
    if (restore !== undefined) split = await withManifest(change, split, one, restore);
  }
  return split;
}

/** Whether something may have to be put back, known from names alone. */
export function mayTouchProtected(paths: readonly Buffer[], patterns: readonly string[] | null): boolean {
  const protection = protectionOf(patterns);
  const isManifest = (name: string): boolean => patterns === null && MANIFESTS.some(([manifest]) => manifest.test(name));
  return paths.map(decodePath).some((name) => protection.protects(name, false) || isManifest(name));
}

async function withManifest(change: Splittable, split: Split, one: MergedChange, restore: typeof withOriginalTests): Promise<Split> {
  if (one.old === null || one.new === null) return split;
  const [old, now] = [await change.text(one.old.id), await change.text(one.new.id)];
  const judged = restore(old, now);
  if (judged === null) return split;
  const judgedFile = judged === old ? one.old : { mode: one.new.mode, id: await change.hold(judged) };
  const free = split.free.flatMap((each) => (each !== one ? [each] : judged === old ? [] : [{ ...one, new: judgedFile }]));
  return {
    free,
    putBack: [...split.putBack, { path: one.path, old: one.new, new: judgedFile }],
    changed: [...split.changed, decodePath(one.path)],
  };
}

/** The new manifest with the old scripts and test runners; null where it has them, the old one where nothing else changed. */
export function withOriginalTests(oldText: string, newText: string): string | null {
  const [old, now] = [readObject(oldText), readObject(newText)];
  if (old === null || now === null) return null;
  const judged: Record<string, unknown> = { ...now, scripts: originalScripts(old["scripts"], now["scripts"]) };
  for (const key of RUNNERS) judged[key] = old[key];
  if (same(judged, now)) return null;
  return same(judged, old) ? oldText : `${JSON.stringify(judged, null, 2)}\n`;
}

/** Scripts that were there are as they were, and nothing new runs before or after them. */
function originalScripts(old: unknown, now: unknown): unknown {
  if (!isObject(old)) return isObject(now) ? now : old;
  const isHook = (name: string): boolean => /^(pre|post)/.test(name) && name.replace(/^(pre|post)/, "") in old;
  const added = Object.entries(isObject(now) ? now : {}).filter(([name]) => !(name in old) && !isHook(name));
  return { ...old, ...Object.fromEntries(added) };
}

/** A manifest was written inside and may hold anything. */
function readObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Whatever the order of keys. */
function same(one: unknown, other: unknown): boolean {
  return JSON.stringify(ordered(one)) === JSON.stringify(ordered(other));
}

function ordered(value: unknown): unknown {
  if (!isObject(value)) return value;
  const entries = Object.entries(value).filter(([, held]) => held !== undefined);
  return Object.fromEntries(entries.toSorted(([one], [other]) => (one < other ? -1 : 1)).map(([key, held]) => [key, ordered(held)]));
}
