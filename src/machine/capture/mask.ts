/** The plan of the mask layer: which paths of the machine a sandbox does not see, and how. */
import { type Dirent, lstatSync, readdirSync, readFileSync, readlinkSync, type Stats } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { PART } from "../../base/host/frames.ts";
import { aliasesOf, type Mount } from "../../base/host/mounts.ts";
import { linksTo, realPlace } from "../../base/host/real-place.ts";
import { NAME_SERVER } from "../../base/schema/network.ts";
import { isWithin } from "./project.ts";
import { ABSENT, EMPTY_FOLDERS, HOLLOW_FOLDERS, READABLE_INSIDE, SEARCHED, TOOLCHAIN_SECRETS, TOOLCHAINS } from "./mask-rules.ts";
import type { PlaceholderOf } from "./logins.ts";
import { foldersOfHomes } from "./people.ts";
import { HOME_FILES, LOGIN_FILES, type Sanitiser, SYSTEM_FILES } from "./sanitise.ts";

/** One entry of the layer; owner and mode come from reality. */
export type MaskEntry =
  | { readonly kind: "dir" | "opaque" | "through"; readonly path: string; readonly like: Owner }
  | { readonly kind: "hide"; readonly path: string }
  | { readonly kind: "link"; readonly path: string; readonly target: string }
  | { readonly kind: "file"; readonly path: string; readonly like: Owner; readonly content: string };

export interface Owner {
  readonly uid: number;
  readonly gid: number;
  readonly mode: number;
}

export interface MaskRequest {
  /** Home folder of the caller. */
  readonly home: string;
  readonly project: string;
  /**
   * Further paths that are hidden, and paths that are shown although they would be hidden; relative ones start at the
   * project, `~` at the home. Of two that hold a path the deeper one counts, of equal ones the mask. What is hidden in the
   * project is not captured either; here it is hidden in folders that are shared live.
   */
  readonly mask: readonly string[];
  readonly expose: readonly string[];
}

export interface MaskFacts {
  /** Home folders of people. */
  readonly homes: readonly string[];
  /** Vivarium's own folders and files. */
  readonly own: readonly string[];
  /** Folders in those that every sandbox sees all the same: they hold programs, and nothing of a user. */
  readonly ownShown: readonly string[];
  /** Folders that are made or mounted by the launcher, and so need no rule. */
  readonly made: readonly string[];
  /** Mounts that may show a folder in more places than one. */
  readonly mounts: readonly Mount[];
  /** What stands in settings files for logins that are kept as secrets. */
  readonly standIn: PlaceholderOf;
}

/** Process 1 answers, or refuses at once where there is no network; reality's servers are out of reach. */
const RESOLVER = `nameserver ${NAME_SERVER}\noptions timeout:5 attempts:1\n`;
const LARGEST_COPY_BYTES = 64 * 1024;

export class MaskPlan {
  readonly #entries = new Map<string, MaskEntry>();
  readonly #request: MaskRequest;
  readonly #facts: MaskFacts;

  constructor(given: MaskRequest, facts: MaskFacts) {
    this.#facts = facts;
    this.#request = {
      ...given,
      mask: given.mask.map((path) => absolute(path, given)).flatMap((path) => this.#places(path)),
      // The place a link lies in is resolved, but what the link leads to is not shown with it.
      expose: given.expose.map((path) => absolute(path, given)).flatMap((path) => [path, join(realPlace(dirname(path)), basename(path))]),
    };
    this.#plan();
  }

  #plan(): void {
    const { home, mask, project } = this.#request;
    const { homes, own } = this.#facts;
    const each = (paths: readonly string[], rule: (path: string) => void): void =>
      paths.flatMap((path) => this.#places(path)).forEach(rule);
    each(EMPTY_FOLDERS, (path) => (found(path) === undefined ? this.#hide(path) : this.#empty(path)));
    each([...foldersOfHomes(homes), ...homes], (path) => this.#empty(path));
    each(HOLLOW_FOLDERS, (path) => this.#hollow(path));
    each(ABSENT, (path) => this.#clear(path));
    for (const path of mask) this.#hide(path);
    for (const [folder, depth] of SEARCHED) this.#hideUnreadable(realPlace(folder), depth);
    for (const [path, sanitiser] of Object.entries(SYSTEM_FILES)) this.#replace(realPlace(path), sanitiser);
    for (const shown of this.#homesShown()) this.#furnish(shown);
    for (const link of linksTo(home)) this.#show(link);
    this.#supply("/etc/resolv.conf", RESOLVER);
    this.#decideOn([...this.#request.expose, ...mask]);
    each(own, (path) => this.#hideOwn(path));
    this.#reach(project);
  }

  /** A path, where its links lead, and where else a mount shows the same. */
  #places(path: string): string[] {
    const real = realPlace(path);
    const places = [path, real, ...aliasesOf(real, this.#facts.mounts)];
    return [...new Set(places)].filter((place) => place !== "/" || path === "/");
  }

  /** Outer ones first, so that the innermost has the last word. */
  #decideOn(paths: readonly string[]): void {
    const { mask } = this.#request;
    for (const path of [...new Set(paths)].toSorted((one, other) => one.length - other.length)) {
      if (mask.includes(path)) this.#hideShown(path);
      else this.#show(path);
    }
  }

  /** Parents first. */
  entries(): MaskEntry[] {
    return [...this.#entries.values()].toSorted((one, other) => (one.path < other.path ? -1 : 1));
  }

  /** Paths that are hidden, emptied or replaced, also those that are not there yet. */
  masked(): string[] {
    return this.entries()
      .filter(({ kind }) => kind === "opaque" || kind === "hide" || kind === "file")
      .map(({ path }) => path);
  }

  through(): string[] {
    return this.entries()
      .filter(({ kind }) => kind === "through")
      .map(({ path }) => path);
  }

  /** The caller's home, and the one the project lies in. */
  #homesShown(): string[] {
    const own = realPlace(this.#request.home);
    return this.#facts.homes.filter((home) => home === own || isWithin(this.#request.project, home));
  }

  #exposed(path: string): boolean {
    if (this.#request.expose.length === 0) return false;
    const deepest = (paths: readonly string[]): number =>
      Math.max(-1, ...paths.filter((each) => isWithin(path, each)).map((each) => each.length));
    return deepest(this.#request.expose) > deepest(this.#request.mask);
  }

  /** Whether something below is to be shown, so that the folder must be there. */
  #leadsToShown(path: string): boolean {
    return this.#request.expose.some((shown) => isWithin(shown, path) && this.#exposed(shown));
  }

  /** Puts an entry in place, with the folders above it as they are in reality. False if reality has no such place. */
  #put(entry: MaskEntry): boolean {
    const parent = dirname(entry.path);
    if (!this.#reach(parent)) return false;
    this.#entries.set(entry.path, entry);
    return true;
  }

  /** Makes sure that a folder of reality can be entered in the layer. */
  #reach(path: string): boolean {
    const known = this.#entries.get(path);
    if (known !== undefined) return known.kind === "dir" || known.kind === "opaque" || known.kind === "through";
    const real = found(path);
    if (real?.isDirectory() !== true || this.#facts.made.includes(path)) return false;
    if (path !== "/" && !this.#reach(dirname(path))) return false;
    this.#entries.set(path, { kind: "dir", path, like: owner(real) });
    return true;
  }

  /** False where there is no folder to empty. */
  #empty(path: string): boolean {
    const real = found(path);
    if (this.#exposed(path) || real?.isDirectory() !== true) return false;
    return this.#put({ kind: "opaque", path, like: owner(real) });
  }

  #hollow(path: string): void {
    this.#empty(path);
    if (this.#entries.get(path)?.kind !== "opaque") return;
    for (const entry of children(path)) if (entry.isDirectory()) this.#reach(join(path, entry.name));
  }

  /** A folder that is there stays, empty, for the program it belongs to. */
  #clear(path: string): void {
    if (found(path)?.isDirectory() === true) this.#empty(path);
    else this.#hide(path);
  }

  /** Also what is not there yet: it may appear in reality while a sandbox runs. */
  #hide(path: string): void {
    if (this.#exposed(path)) return;
    // A folder with the project or something shown in it must be there.
    if (isWithin(this.#request.project, path) || this.#leadsToShown(path)) this.#empty(path);
    else if (!this.#isEmptied(path) || isWithin(path, this.#request.project)) this.#put({ kind: "hide", path: outermostMissing(path) });
  }

  /** Whatever is shown around it: who sees this is no sandbox any more. */
  #hideOwn(path: string): void {
    for (const at of this.#entries.keys()) if (isWithin(at, path)) this.#entries.delete(at);
    const shown = this.#facts.ownShown.filter((folder) => isWithin(folder, path) && found(folder)?.isDirectory() === true);
    if (shown.length > 0) this.#showAlone(path, shown);
    else if (!this.#isEmptied(path) || this.#isShownThrough(path)) this.#put({ kind: "hide", path: outermostMissing(path) });
  }

  /** The folder is private in reality. Inside it holds nothing but these, so that each user inside may pass through it. */
  #showAlone(path: string, shown: readonly string[]): void {
    const like = found(path);
    if (like === undefined) return;
    this.#put({ kind: "opaque", path, like: { ...owner(like), mode: 0o755 } });
    for (const folder of shown) this.#show(folder);
  }

  /** Whether an emptied folder above hides it already. */
  #isEmptied(path: string): boolean {
    for (let folder = dirname(path); ; folder = dirname(folder)) {
      if (this.#entries.get(folder)?.kind === "opaque") return true;
      if (folder === "/") return false;
    }
  }

  /** Root inside must not read files that other users may not read. */
  #hideUnreadable(folder: string, depth: number): void {
    for (const entry of children(folder)) {
      const path = join(folder, entry.name);
      const real =
        entry.isSymbolicLink() || READABLE_INSIDE.includes(path) || this.#isSettled(path) || this.#exposed(path) ? undefined : found(path);
      if (real === undefined) continue;
      const readable = (real.mode & (real.isDirectory() ? 0o005 : 0o004)) !== 0;
      if (!readable) this.#clear(path);
      else if (real.isDirectory() && depth > 1) this.#hideUnreadable(path, depth - 1);
    }
  }

  /** Whether a rule decided on it already; a folder that only leads to another entry is still to be looked at. */
  #isSettled(path: string): boolean {
    const known = this.#entries.get(path);
    return this.#facts.made.includes(path) || (known !== undefined && known.kind !== "dir");
  }

  #replace(path: string, sanitiser: Sanitiser): void {
    const real = found(path);
    if (real?.isFile() === true && !this.#exposed(path)) this.#copy(path, real, sanitiser);
  }

  /** A file of our own, whatever reality has there. */
  #supply(path: string, content: string): void {
    const folder = found(dirname(path));
    if (folder !== undefined && !this.#exposed(path)) this.#put({ kind: "file", path, like: { ...owner(folder), mode: 0o644 }, content });
  }

  #copy(path: string, real: Stats, sanitiser: Sanitiser): void {
    const content = real.size > LARGEST_COPY_BYTES ? undefined : text(path);
    const copy = content === undefined ? undefined : sanitiser(content, this.#facts.standIn);
    if (copy === undefined || copy.includes("\0") || copy.includes(PART)) this.#put({ kind: "hide", path });
    else this.#put({ kind: "file", path, like: owner(real), content: copy });
  }

  /** Toolchains, caches and settings without logins, in an emptied home folder. */
  #furnish(home: string): void {
    if (this.#entries.get(home)?.kind !== "opaque") return;
    for (const name of TOOLCHAINS) this.#show(join(home, name));
    for (const name of TOOLCHAIN_SECRETS) for (const path of matching(join(home, name))) this.#hideSecret(path);
    for (const [name, sanitiser] of Object.entries(HOME_FILES)) this.#replace(join(home, name), sanitiser);
    for (const [name, sanitiser] of Object.entries(LOGIN_FILES)) this.#replaceLogins(join(home, name), sanitiser);
  }

  /** Also where a toolchain lies elsewhere, and the home has a link to it. */
  #hideSecret(path: string): void {
    this.#hideShown(path);
    const real = realPlace(path);
    if (real !== path && !isWithin(real, this.#request.project)) this.#hide(real);
  }

  /** Hidden already, and shown only if a placeholder stands in it. */
  #replaceLogins(path: string, sanitiser: Sanitiser): void {
    const real = found(path);
    if (real?.isFile() !== true || real.size > LARGEST_COPY_BYTES) return;
    const copy = sanitiser(text(path) ?? "", this.#facts.standIn);
    if (copy !== undefined) this.#replace(path, () => copy);
  }

  /** Takes back what an emptied folder shows at, below or around a path. */
  #hideShown(path: string): void {
    if (this.#exposed(path)) return;
    for (const [at, { kind }] of this.#entries) {
      if (isWithin(at, path) && (kind === "through" || kind === "file" || kind === "link") && this.#isEmptied(at)) this.#entries.delete(at);
    }
    if (!this.#isShownThrough(path)) return;
    if (!this.#leadsToShown(path) || !this.#empty(path)) this.#put({ kind: "hide", path });
  }

  #isShownThrough(path: string): boolean {
    return [...this.#entries.values()].some((entry) => entry.kind === "through" && isWithin(path, entry.path));
  }

  /** Shows a folder of reality inside an emptied one. A file is copied as it is now. */
  #show(path: string): void {
    const real = found(path);
    if (real === undefined || !this.#isEmptied(path) || isWithin(this.#request.project, path)) return;
    if (real.isDirectory()) this.#put({ kind: "through", path, like: owner(real) });
    else if (real.isSymbolicLink()) this.#put({ kind: "link", path, target: readlinkSync(path) });
    else if (real.isFile()) this.#copy(path, real, (content) => content);
  }
}

function absolute(path: string, { home, project }: MaskRequest): string {
  return resolve(project, path.replace(/^~(?=\/|$)/, home));
}

/** Where the paths that a request hides lead now. */
export function placesOf(request: MaskRequest): string[] {
  return request.mask.map((path) => realPlace(absolute(path, request)));
}

/** Where the folder above is missing too, that is what must not appear. */
function outermostMissing(path: string): string {
  return path !== "/" && found(dirname(path)) === undefined ? outermostMissing(dirname(path)) : path;
}

/** A `*` at the end of a name stands for the rest of it. */
function matching(path: string): string[] {
  if (!path.endsWith("*")) return [path];
  const [folder, start] = [dirname(path), basename(path).slice(0, -1)];
  return children(folder)
    .filter(({ name }) => name.startsWith(start))
    .map(({ name }) => join(folder, name));
}

function owner(real: Stats): Owner {
  return { uid: real.uid, gid: real.gid, mode: real.mode & 0o7777 };
}

function found(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch (error) {
    if (isRefusal(error)) return undefined;
    throw error;
  }
}

function children(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch (error) {
    if (isRefusal(error)) return [];
    throw error;
  }
}

function text(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (isRefusal(error)) return undefined;
    throw error;
  }
}

/** What an ordinary user can't look at, it can't show to a sandbox either. */
function isRefusal(error: unknown): boolean {
  return ["EACCES", "EPERM", "ENOENT", "ENOTDIR", "ELOOP"].includes((error as NodeJS.ErrnoException).code ?? "");
}
