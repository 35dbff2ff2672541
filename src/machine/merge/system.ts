/** What a sandbox changed outside the project: packages, files in /etc, and everything else by folder. */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import type { DiffEntry, PackageChange, SystemDiff } from "../../base/schema/files.ts";
import type { CopyFilesOut } from "../volumes/copy-files-out.ts";
import type { FolderSides, SystemPart } from "../volumes/comparison.ts";
import { diffNames, type GitWorkspace } from "./diff.ts";

type Package = SystemDiff["packages"][number];

const DPKG_STATUS = "var/lib/dpkg/status";
const NPM_PACKAGE = /^(?:usr\/|usr\/local\/|opt\/[^/]+\/)?lib\/node_modules\/((?:@[^/]+\/)?[^/@.][^/]*)\/package\.json$/;
const PIP_PACKAGE =
  /^usr\/(?:local\/)?lib\/python3[^/]*\/(?:dist|site)-packages\/([^/]+?)-([^/-]+)\.(?:dist|egg)-info(?:\/METADATA|\/PKG-INFO)?$/;
/** Folders below these say more than their first name does. */
const DEEP = /^(usr\/local|usr|var|home|opt)$/;

export async function diffSystem(workplace: GitWorkspace, takeOut: CopyFilesOut, system: readonly SystemPart[]): Promise<SystemDiff> {
  const { entries, more } = await changesOf(workplace, system);
  const folder = await mkdtemp(join(workplace.temporary, "system-"));
  try {
    const texts = new Texts(takeOut, system, folder);
    const packages = [
      ...(entries.some(({ path }) => path === DPKG_STATUS) ? await debianChanges(texts) : []),
      ...(await npmChanges(texts, entries)),
      ...pipChanges(entries),
    ];
    const leaves = entries.filter(({ type }) => type !== "dir");
    return {
      packages: packages.toSorted((one, other) => (one.manager + one.name < other.manager + other.name ? -1 : 1)),
      etc: leaves.filter(({ path }) => path.startsWith("etc/")).map((entry) => ({ ...entry, path: `/${entry.path}` })),
      folders: summary(leaves.filter(({ path }) => !path.startsWith("etc/"))),
      more,
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Changes of all parts, with paths that begin at the system's root. */
async function changesOf(workplace: GitWorkspace, system: readonly SystemPart[]): Promise<{ entries: DiffEntry[]; more: boolean }> {
  const all = await Promise.all(
    system.map(async ({ at, sides }) => {
      const { entries, more } = await diffNames(workplace, sides);
      return { entries: entries.map((entry) => ({ ...entry, path: join(at, entry.path).slice(1) })), more };
    }),
  );
  return { entries: all.flatMap(({ entries }) => entries), more: all.some(({ more }) => more) };
}

/** Texts of single files, as they are in reality and inside. */
class Texts {
  readonly #takeOut: CopyFilesOut;
  readonly #system: readonly SystemPart[];
  readonly #folder: string;
  #taken = 0;

  constructor(takeOut: CopyFilesOut, system: readonly SystemPart[], folder: string) {
    this.#takeOut = takeOut;
    this.#system = system;
    this.#folder = folder;
  }

  async old(path: string): Promise<string> {
    const { sides, below } = this.#partOf(path);
    for (const layer of sides.old) {
      const text = await this.#read(layer, below);
      if (text !== "") return text;
    }
    return "";
  }

  async new(path: string): Promise<string> {
    const { sides, below } = this.#partOf(path);
    return this.#read(sides.new, below);
  }

  /** The innermost part that holds a path, and the path below it. */
  #partOf(path: string): { sides: FolderSides; below: string } {
    const holding = this.#system.filter(({ at }) => at === "/" || `/${path}`.startsWith(`${at}/`));
    const { at, sides } = holding.reduce((inner, part) => (part.at.length > inner.at.length ? part : inner));
    return { sides, below: at === "/" ? path : path.slice(at.length) };
  }

  async #read(root: string, path: string): Promise<string> {
    this.#taken += 1;
    const target = join(this.#folder, String(this.#taken));
    const taken = await this.#takeOut(root, [{ path, target }]);
    return taken.has(path) ? readFile(target, "utf8") : "";
  }
}

/** Installed packages and their versions, of dpkg's status file. */
export function readDebianStatus(text: string): Map<string, string> {
  const packages = new Map<string, string>();
  for (const stanza of text.split(/\n\n+/)) {
    const value = (key: string): string => new RegExp(`^${key}: (.*)$`, "m").exec(stanza)?.[1] ?? "";
    if (value("Status").endsWith(" installed")) packages.set(value("Package"), value("Version"));
  }
  return packages;
}

async function debianChanges(texts: Texts): Promise<Package[]> {
  const old = readDebianStatus(await texts.old(DPKG_STATUS));
  const now = readDebianStatus(await texts.new(DPKG_STATUS));
  return compareVersions(old, now).map((change) => ({ manager: "dpkg", ...change }));
}

function compareVersions(old: ReadonlyMap<string, string>, now: ReadonlyMap<string, string>): PackageChange[] {
  const names = new Set([...old.keys(), ...now.keys()]);
  return [...names]
    .filter((name) => old.get(name) !== now.get(name))
    .map((name) => ({ name, old: old.get(name) ?? null, new: now.get(name) ?? null }));
}

async function npmChanges(texts: Texts, entries: readonly DiffEntry[]): Promise<Package[]> {
  const changes: Package[] = [];
  for (const { path, status } of entries) {
    const name = NPM_PACKAGE.exec(path)?.[1];
    if (name === undefined) continue;
    const old = status === "added" ? null : versionOf(await texts.old(path));
    const now = status === "deleted" ? null : versionOf(await texts.new(path));
    if (old !== now) changes.push({ manager: "npm", name, old, new: now });
  }
  return changes;
}

/** The version that a package.json claims; it was written inside and may hold anything. */
function versionOf(text: string): string {
  try {
    const { version } = JSON.parse(text) as { version?: unknown };
    return typeof version === "string" ? version : "?";
  } catch (error) {
    if (error instanceof SyntaxError) return "?";
    throw error;
  }
}

function pipChanges(entries: readonly DiffEntry[]): Package[] {
  const old = new Map<string, string>();
  const now = new Map<string, string>();
  for (const { path, status } of entries) {
    const [, name, version] = PIP_PACKAGE.exec(path) ?? [];
    if (name === undefined || version === undefined) continue;
    if (status === "added") now.set(name, version);
    else if (status === "deleted") old.set(name, version);
  }
  return compareVersions(old, now).map((change) => ({ manager: "pip", ...change }));
}

function summary(entries: readonly DiffEntry[]): SystemDiff["folders"] {
  const folders = new Map<string, { path: string; added: number; changed: number; deleted: number }>();
  for (const { path, status } of entries) {
    const key = folderOf(path);
    const counts = folders.get(key) ?? { path: key, added: 0, changed: 0, deleted: 0 };
    counts[status === "renamed" ? "changed" : status] += 1;
    folders.set(key, counts);
  }
  return [...folders.values()].toSorted((one, other) => (one.path < other.path ? -1 : 1));
}

/** The folder under which a path is counted: the first that tells something. */
function folderOf(path: string): string {
  const parts = path.split("/").slice(0, -1);
  let depth = 1;
  while (depth < parts.length && DEEP.test(parts.slice(0, depth).join("/"))) depth += 1;
  return `/${parts.slice(0, depth).join("/")}`;
}
