/** What a base holds, said for people. */
import { lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { LIMITS } from "../../base/schema/limits.ts";
import type { CaptureReport, LiveFolder } from "../../base/schema/sandbox.ts";
import type { Roots } from "./roots.ts";
import type { SyncReport } from "./syncing.ts";

interface Parts {
  readonly roots: Roots;
  readonly live: readonly LiveFolder[];
  /** What the last sync of each root found. */
  readonly synced: readonly SyncReport[];
}

const SECRET_FILE =
  /^\.env(\..+)?$|^\.netrc$|^\.npmrc$|^\.pypirc$|\.pem$|^id_(rsa|ed25519|ecdsa)$|^credentials(\.json)?$|^secrets\.(json|ya?ml)$/;
const EXAMPLE = /\.(example|sample|template|dist|defaults?)$/;

export function makeReport(parts: Parts, now: readonly (SyncReport | undefined)[], readOnlyBefore: readonly string[]): CaptureReport {
  const sum = (of: (found: SyncReport) => number): number => parts.synced.reduce((total, found) => total + of(found), 0);
  const fresh = now.filter((found) => found !== undefined);
  const torn = now.flatMap((found, index) => (found?.torn ?? []).map((path) => join(parts.roots.roots[index]?.path ?? "", path)));
  return {
    files: sum((found) => found.files),
    bytes: sum((found) => found.totalBytes),
    changed: fresh.reduce((total, found) => total + found.changed, 0),
    removed: fresh.reduce((total, found) => total + found.removed, 0),
    live: [...parts.live],
    readOnly: largeFiles(parts.roots, now, readOnlyBefore),
    torn,
    notes: [...parts.roots.notes, ...secretNotes(parts.roots), ...syncNotes(parts)],
  };
}

/** A sync of some folders names the large files in those alone; the others are the ones from before that are still there. */
function largeFiles(roots: Roots, now: readonly (SyncReport | undefined)[], before: readonly string[]): string[] {
  const found = now.flatMap((synced, index) => (synced?.big ?? []).map((path) => join(roots.roots[index]?.path ?? "", path)));
  const still = before.filter((path) => (lstatSync(path, { throwIfNoEntry: false })?.size ?? 0) > LIMITS.maxCapturedFileBytes);
  return [...new Set([...still, ...found])].toSorted();
}

function secretNotes({ roots }: Roots): string[] {
  return roots
    .flatMap(({ kind, source }) => (kind === "project" ? readdirSync(source) : []))
    .filter((name) => SECRET_FILE.test(name) && !EXAMPLE.test(name))
    .map((name) => `captured: ${name} (may hold secrets)`);
}

function syncNotes({ synced, roots }: Parts): string[] {
  return synced.flatMap((found, index) => {
    const root = roots.roots[index]?.path ?? "";
    return [
      ...(found.special > 0 ? [`${found.special} sockets, pipes or devices in ${root} are left out.`] : []),
      ...found.unreadable.slice(0, 10).map((path) => `${join(root, path)} can't be read and is left out.`),
      ...found.mounts.slice(0, 10).map((path) => `${join(root, path)} is another file system and empty inside.`),
      ...(found.restless ? [`${root} kept changing while it was captured, so its files may not fit together.`] : []),
    ];
  });
}
