/** What an attempt changed that is not promoted, and what its change needs to work without that. */
import { diffNames } from "../../machine/merge/diff.ts";
import type { LeftOut } from "../../machine/merge/promotable.ts";
import { diffSystem } from "../../machine/merge/system.ts";
import type { MergedChange } from "../../machine/merge/three-way.ts";
import { decodePath } from "../../base/schema/path-bytes.ts";
import type { Parts } from "../../sandbox/shared/parts.ts";
import type { SandboxRow } from "../../base/store/rows.ts";

const MOST = 50;
/** What every shell and package manager leaves behind tells nothing. */
const NOISE = /^\/(tmp|var\/tmp|run|var\/cache|var\/log|root\/\.(npm|cache)|home\/[^/]+\/\.(npm|cache))(\/|$)/;

/** Folders shared live, packages and system files, one line each. */
export async function sideChanges(
  parts: Pick<Parts, "store" | "backends">,
  row: SandboxRow,
  snapshot: string,
  temporary: string,
): Promise<string[]> {
  const { driver, storage, gather, takeOut } = parts.backends.of(row);
  if (!driver.capabilities.walled) return [];
  const system = storage.comparison.system({ snapshot });
  const { packages, etc, folders } = await diffSystem({ gather, temporary }, takeOut, system);
  const base = await parts.store.bases.get(row.base);
  const lines: string[] = [];
  for (const { path, slot } of base?.live ?? []) {
    const { entries } = await diffNames({ gather, temporary }, storage.comparison.live({ snapshot }, { path, slot }));
    const files = entries.filter(({ type }) => type !== "dir").length;
    if (files > 0) lines.push(`${path.slice(row.project.length + 1)}/ (${count(files, "file")})`);
  }
  lines.push(...packages.map(({ manager, name, old, new: now }) => `${manager} package ${name} ${old ?? ""}->${now ?? "removed"}`));
  lines.push(...etc.map(({ path }) => path));
  for (const { path, added, changed, deleted } of folders)
    if (!NOISE.test(path)) lines.push(`${path}/ (${count(added + changed + deleted, "file")})`);
  return lines;
}

export function shortened(lines: readonly string[]): string[] {
  return lines.length > MOST ? [...lines.slice(0, MOST), `and ${lines.length - MOST} more`] : [...lines];
}

/** What is left out of the project's change, one line for each folder or file at its top. */
export function byFolder(leftOut: readonly LeftOut[]): string[] {
  const counts = new Map<string, number>();
  for (const { path } of leftOut) {
    const [first = "", ...rest] = decodePath(path).split("/");
    const key = rest.length === 0 ? first : `${first}/`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return [...counts].map(([key, number]) => (key.endsWith("/") ? `${key} (${count(number, "file")})` : key));
}

export function count(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? "" : "s"}`;
}

/** Files that say what is installed, and what installs it. */
const INSTALLERS: readonly (readonly [RegExp, (path: string) => string])[] = [
  [/(^|\/)(package-lock|npm-shrinkwrap)\.json$/, () => "npm ci"],
  [/(^|\/)yarn\.lock$/, () => "yarn install --frozen-lockfile"],
  [/(^|\/)pnpm-lock\.yaml$/, () => "pnpm install --frozen-lockfile"],
  [/(^|\/)bun\.lockb?$/, () => "bun install --frozen-lockfile"],
  [/(^|\/)requirements[^/]*\.txt$/, (path) => `pip install -r ${path}`],
  [/(^|\/)poetry\.lock$/, () => "poetry install"],
  [/(^|\/)uv\.lock$/, () => "uv sync"],
  [/(^|\/)Pipfile\.lock$/, () => "pipenv sync"],
  [/(^|\/)Gemfile\.lock$/, () => "bundle install"],
  [/(^|\/)composer\.lock$/, () => "composer install"],
  [/(^|\/)go\.(sum|mod)$/, () => "go mod download"],
  [/(^|\/)Cargo\.lock$/, () => "cargo fetch"],
];
const MANIFEST = /(^|\/)package\.json$/;

/** What the change needs: an install where a lock file changed, otherwise the side changes it was made with. */
export function needsOf(changes: readonly MergedChange[], sides: readonly string[]): string[] {
  const paths = changes.filter((change) => change.new !== null).map(({ path }) => decodePath(path));
  const installs = paths.flatMap((path) => INSTALLERS.find(([pattern]) => pattern.test(path))?.[1](path) ?? []);
  if (installs.length > 0) return [...new Set(installs)];
  if (paths.some((path) => MANIFEST.test(path)) && sides.some((side) => side.includes("node_modules/"))) return ["npm install"];
  return [...sides];
}
