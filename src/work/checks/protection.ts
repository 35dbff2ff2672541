/** Files that the checks depend on: an attempt that changed them is judged with the original ones. */
import type { MergedChange } from "../../machine/merge/three-way.ts";
import { decodePath } from "../../base/schema/path-bytes.ts";

/** Tests and what tells a runner how to run them, in the languages people use. */
const TESTS: readonly RegExp[] = [
  /(^|\/)(tests?|__tests__|__snapshots__|specs?|e2e|cypress)\//i,
  /[._-](test|tests|spec|specs)\.[^/]+$/i,
  /(^|\/)tests?_[^/]*\.[a-z]+$/i,
  /(^|\/)tests?\.[a-z]+$/i,
  /Tests?\.(java|kt|kts|scala|groovy|cs|vb|fs|php|swift)$/,
];
const TEST_CONFIGURATION: readonly RegExp[] = [
  /(^|\/)(vitest|jest|mocha|playwright|cypress|karma|ava|wdio|nightwatch|testcafe)[.-](config|conf|setup|workspace|globals?)\.[^/]+$/,
  /(^|\/)\.(mocharc|nycrc|c8rc|taprc|jestrc|rspec)(\.[^/]+)?$/,
  /(^|\/)(conftest\.py|pytest\.ini|tox\.ini|noxfile\.py|phpunit\.xml(\.dist)?|\.coveragerc|karma\.conf\.[^/]+)$/,
];

/** What decides how commands of a check are run, whatever the check is. */
const STEERING: readonly RegExp[] = [
  /(^|\/)\.(npmrc|yarnrc|yarnrc\.yml|pnpmfile\.cjs|env|env\.[^/]+)$/,
  /(^|\/)(bunfig\.toml|setup\.cfg|sitecustomize\.py|usercustomize\.py|[^/]+\.pth)$/,
  /(^|\/)((gnu)?makefile|\.?justfile|rakefile)$/i,
];

export interface Protection {
  /** Whether a change of this path is one of a protected file. */
  protects(path: string, isNew: boolean): boolean;
}

/** Named ones as they are named, with what is added to them; else existing tests and their configuration. */
export function protectionOf(patterns: readonly string[] | null): Protection {
  if (patterns === null) return { protects: (path, isNew) => !isNew && (matches(TESTS, path) || isTestConfiguration(path)) };
  const named = patterns.map(readPattern);
  return { protects: (path) => matches(named, path) };
}

export function isTestConfiguration(path: string): boolean {
  return matches(TEST_CONFIGURATION, path);
}

/** Paths that an attempt can't take out of its change by an ignore rule of its own. */
export function keptInChange(patterns: readonly string[] | null): (path: string) => boolean {
  const protection = protectionOf(patterns);
  return (path) => protection.protects(path, true) || isTestConfiguration(path) || steersChecks(path);
}

export function steersChecks(path: string): boolean {
  return matches(STEERING, path);
}

function matches(patterns: readonly RegExp[], path: string): boolean {
  return patterns.some((pattern) => pattern.test(path));
}

/** A path with all below it, or a pattern with `*`, `**` and `?`; one without a slash means that name anywhere. */
function readPattern(pattern: string): RegExp {
  const clean = pattern.replace(/^(\.?\/)+/, "").replace(/\/+$/, "");
  const body = clean
    .replace(/[.+^${}()|[\]\\]/g, "\\$&")
    .replace(/\*\*\/?|\*|\?/g, (wild) => ({ "**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]" })[wild] ?? wild);
  return new RegExp(`^${clean.includes("/") || pattern.includes("/") ? "" : "(?:.*/)?"}${body}(?:/.*)?$`, "s");
}

export interface Split {
  /** What is not protected. */
  readonly free: readonly MergedChange[];
  /** What undoes the changes of protected files. */
  readonly putBack: readonly MergedChange[];
  /** Protected paths that were changed. */
  readonly changed: readonly string[];
}

/** Takes the changes of protected files out of a change. */
export function splitProtected(changes: readonly MergedChange[], protection: Protection): Split {
  const touched = changes.filter(({ path, old }) => protection.protects(decodePath(path), old === null));
  if (touched.length === 0) return { free: changes, putBack: [], changed: [] };
  const above = new Set(touched.filter(({ old }) => old !== null).flatMap(({ path }) => foldersAbove(path.toString("latin1"))));
  // A file or link in the place of a folder that holds protected files is in their way.
  const inTheWay = changes.filter(({ path, new: now }) => now !== null && above.has(path.toString("latin1")));
  const taken = new Set([...touched, ...inTheWay]);
  return {
    free: changes.filter((change) => !taken.has(change)),
    putBack: [...taken].map(({ path, old, new: now }) => ({ path, old: now, new: old })),
    changed: touched.map(({ path }) => decodePath(path)),
  };
}

function foldersAbove(path: string): string[] {
  const folders: string[] = [];
  for (let end = path.lastIndexOf("/"); end > 0; end = path.lastIndexOf("/", end - 1)) folders.push(path.slice(0, end));
  return folders;
}
