/** Capture of projects: one tip each that follows reality, frozen into a base whenever something changed. */
import { existsSync, lstatSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { join, relative } from "node:path";
import type { CellHost } from "../../base/host/cell-host.ts";
import { CellError } from "../../base/host/helper.ts";
import { KeyedLocks } from "../../base/host/locks.ts";
import { mountOf, readMounts } from "../../base/host/mounts.ts";
import { VivError } from "../../base/schema/errors.ts";
import type { Staleness } from "../../base/schema/files.ts";
import { newId } from "../../base/schema/ids.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { LiveFolder } from "../../base/schema/sandbox.ts";
import { type SharedList, writeShared } from "../volumes/shared.ts";
import type { Tip } from "../volumes/bases.ts";
import type { Storage } from "../volumes/volumes.ts";
import type { BroughtBase, Capture, CaptureRequest, SharedFolders, TakenFolder, VolumeAhead } from "./capture.ts";
import type { Base } from "../../base/store/rows.ts";
import { explain, isFinal } from "./failures.ts";
import { likeReality } from "./gitconfig.ts";
import { chooseLive } from "./ignored.ts";
import { makeReport } from "./report.ts";
import { isWithin } from "./project.ts";
import { PROJECT_SLOT } from "../volumes/volumes.ts";
import { findRoots, type Root, type Roots } from "./roots.ts";
import { WatchedFolders } from "./shared.ts";
import { compareWithReality } from "./staleness.ts";
import { allIds } from "./large-ids.ts";
import { type SyncReport, syncRoot } from "./syncing.ts";
import { type ChangedPaths, ProjectWatcher } from "./project-watcher.ts";

/** A project that is being followed. */
interface FollowedProject {
  /** The request it was captured for; another one starts over. */
  readonly key: string;
  readonly roots: Roots;
  readonly live: readonly LiveFolder[];
  readonly watches: readonly ProjectWatcher[];
  /** Which folders the roots' paths led to: a watch stays with a folder that was moved away. */
  readonly identity: string;
  /** What the last sync of each root found. */
  readonly synced: SyncReport[];
  readonly base: Base;
}

/** A volume that was offered to a capture. */
interface Offer {
  readonly ahead: () => Promise<VolumeAhead | undefined>;
  became: BroughtBase["volume"];
}

/** One that fits what is captured. */
interface Twin extends VolumeAhead {
  readonly offer: Offer;
}

/** So many changed folders are a sign of an install or a checkout: what is live is decided anew. */
const MANY_FOLDERS = 200;

/** The ports of a storage that capture writes to. */
type CaptureStorage = Pick<Storage, "bases" | "health" | "capabilities">;

export class ProjectCapture implements Capture {
  readonly #host: CellHost;
  readonly #storage: CaptureStorage;
  readonly #locks = new KeyedLocks();
  readonly #followed = new Map<string, FollowedProject>();
  /** Bases that no sandbox uses, kept for the next clone of a project that has not changed since. */
  readonly #forgotten = new Set<string>();
  /** Bases of folders that are the same each time, by project. */
  readonly #lasting = new Map<string, Base>();

  constructor(host: CellHost, storage: CaptureStorage) {
    this.#host = host;
    this.#storage = storage;
  }

  async base(request: CaptureRequest, signal?: AbortSignal): Promise<Base> {
    return this.#locks.run(request.project, () => {
      if (signal?.aborted === true) throw new VivError("cancelled", "The capture of the project was cancelled.");
      return this.#explained(request);
    });
  }

  last(project: string): Base | undefined {
    return this.#followed.get(project)?.base;
  }

  async bring(request: CaptureRequest, ahead: () => Promise<VolumeAhead | undefined>): Promise<BroughtBase> {
    return this.#locks.run(request.project, async () => {
      const offer: Offer = { ahead, became: "untouched" };
      const base = await this.#explained(request, offer);
      return { base, volume: offer.became };
    });
  }

  async #explained(request: CaptureRequest, offer?: Offer): Promise<Base> {
    try {
      const base = await this.#current(request, offer);
      this.#forgotten.delete(base.id);
      return base;
    } catch (error) {
      throw explain(error, request.path);
    }
  }

  async take({ project, path, source, lasting }: TakenFolder): Promise<Base> {
    return this.#locks.run(project, async () => {
      const last = lasting === undefined ? undefined : this.#lasting.get(project);
      // Storage that was opened again may have lost it.
      if (last !== undefined && existsSync(`${await this.#storage.bases.manifests(last.id)}${PROJECT_SLOT}`)) return last;
      try {
        await this.#storage.health.free(); // makes the storage grow before it is needed
        const root: Root = { path, source, slot: PROJECT_SLOT, kind: "taken" };
        const tip = await this.#storage.bases.openTip(project, true);
        const synced = [await syncRoot(this.#host, { tip, root, skip: [], dirty: "all" })];
        const id = newId("base");
        const takenAt = new Date().toISOString();
        await this.#storage.bases.freeze(project, id);
        const base = baseOf({ id, project, takenAt }, { roots: { roots: [root], notes: [] }, live: [], synced }, synced, []);
        if (lasting !== undefined) this.#lasting.set(project, base);
        return base;
      } catch (error) {
        throw explain(error, path);
      }
    });
  }

  async #current(request: CaptureRequest, offer?: Offer): Promise<Base> {
    const followed = this.#followed.get(request.project);
    if (followed === undefined || followed.key !== JSON.stringify(request)) return this.#begin(request);
    const dirty = await Promise.all(followed.watches.map((watch) => watch.drain()));
    if (identify(followed.roots) !== followed.identity) return this.#begin(request);
    // What was shared live and is gone can't be; the inside of such a folder is not watched.
    if (!followed.live.every(({ path }) => isFolder(path))) return this.#begin(request);
    if (dirty.every((folders) => folders.length === 0)) return followed.base;
    if (dirty.some((folders) => folders === "all" || folders.length > MANY_FOLDERS)) return this.#begin(request);
    return this.#follow(request, followed, dirty, offer);
  }

  /** Carries over what changed. Where that fails, everything is compared: what was drained is not told again. */
  async #follow(request: CaptureRequest, followed: FollowedProject, dirty: readonly ChangedPaths[], offer?: Offer): Promise<Base> {
    try {
      const twin = await this.#twin(offer, followed);
      const tip = await this.#storage.bases.openTip(request.project, false);
      if (twin !== undefined) twin.offer.became = "spoiled";
      const now = await this.#sync(request, tip, followed, dirty, twin?.folder);
      const synced = now.map((found, index) => withKnown(found, followed.synced[index])).filter((found) => found !== undefined);
      if (needsNewChoice(request, now, synced)) return await this.#begin(request);
      const before = followed.base;
      const changed = now.some((found) => found !== undefined && found.changed + found.removed > 0);
      const isAlike = now.every((found) => found === undefined || found.twin);
      if (twin !== undefined && isAlike && !changed) twin.offer.became = "untouched";
      const base = changed ? await this.#freeze(request, { ...followed, synced }, now, before, isAlike ? twin : undefined) : before;
      this.#followed.set(request.project, { ...followed, synced, base });
      if (changed) await this.#supersede(before);
      return base;
    } catch (error) {
      await this.#stop(request.project);
      if (!(error instanceof CellError) || isFinal(error)) throw error;
      return this.#begin(request);
    }
  }

  /** Folders that are shared live lie below an overlay, whose upper folder must not be changed from outside. */
  async #twin(offer: Offer | undefined, { base, live }: FollowedProject): Promise<Twin | undefined> {
    if (offer === undefined || this.#storage.bases.later === undefined || live.length > 0) return undefined;
    const ahead = await offer.ahead();
    return ahead?.from === base.id ? { ...ahead, offer } : undefined;
  }

  /** From a comparison of everything. */
  async #begin(request: CaptureRequest): Promise<Base> {
    await this.#stop(request.project);
    await this.#storage.health.free(); // makes the storage grow before it is needed
    if (!isFolder(request.path)) throw new VivError("project_not_found", `The project ${request.path} does not exist any more.`);
    const found = await findRoots(request.path, request.data);
    const { live, notes } = await chooseLive(this.#host, request.path, {
      configured: request.live,
      excluded: request.exclude,
      limitBytes: request.limitBytes,
    });
    const roots = { ...found, notes: [...found.notes, ...notes] };
    const watches = roots.roots.map((root) => new ProjectWatcher(this.#host, `${request.project}.${root.slot}`));
    const parts = { key: JSON.stringify(request), roots, live, watches, identity: identify(roots) };
    // Watching begins first, so that what changes during the comparison is found by the next one.
    for (const [index, root] of roots.roots.entries()) await watches[index]?.start(root.source, skipped(request, root, live));
    const synced = await this.#syncAll(request, parts);
    const followed = { ...parts, synced, base: await this.#freeze(request, { ...parts, synced }, synced) };
    this.#followed.set(request.project, followed);
    return followed.base;
  }

  /** A tip that was left half-written by a crash is made anew. */
  async #syncAll(request: CaptureRequest, parts: Pick<FollowedProject, "roots" | "live">): Promise<SyncReport[]> {
    const everything = parts.roots.roots.map((): ChangedPaths => "all");
    const attempt = async (fresh: boolean): Promise<SyncReport[]> => {
      const tip = await this.#storage.bases.openTip(request.project, fresh);
      if (!fresh && (await lacksRoots(tip, parts.roots))) return attempt(true);
      return (await this.#sync(request, tip, parts, everything)).filter((found) => found !== undefined);
    };
    try {
      return await attempt(this.#hasStaleFiles(request));
    } catch (error) {
      if (!(error instanceof CellError) || isFinal(error)) throw error;
      return attempt(true);
    }
  }

  /** A layer can't take a file away that a layer below it holds and reality still has. */
  #hasStaleFiles(request: CaptureRequest): boolean {
    const layered = this.#storage.capabilities.roots === "overlay";
    const hidden = request.hidden.filter((path) => request.data.some((folder) => isWithin(path, folder.path)));
    const left = [...request.exclude.map((path) => join(request.path, path)), ...hidden];
    return layered && left.some((path) => lstatSync(path, { throwIfNoEntry: false })?.isFile() === true);
  }

  /** One answer a root; undefined for those in which nothing changed. */
  async #sync(
    request: CaptureRequest,
    tip: Tip,
    parts: Pick<FollowedProject, "roots" | "live">,
    dirty: readonly ChangedPaths[],
    twin?: string,
  ): Promise<(SyncReport | undefined)[]> {
    const synced: (SyncReport | undefined)[] = [];
    for (const [index, root] of parts.roots.roots.entries()) {
      const folders = dirty[index] ?? "all";
      const skip = skipped(request, root, parts.live);
      const beside = twin === undefined ? undefined : join(twin, "roots", String(root.slot));
      if (folders.length > 0) synced.push(await syncRoot(this.#host, { tip, root, skip, dirty: folders, twin: beside }));
      else synced.push(await this.#untouched(tip, root));
    }
    const joined = this.#joined(request, parts.live);
    if (this.#storage.capabilities.shared === "joined") writeShared(tip.folder, joined);
    for (const [slot, folder] of parts.live.entries()) {
      if (joined.folders.includes(relative(request.path, folder.path))) continue;
      const upper = join(tip.folder, `live/${slot}/upper`);
      await mkdir(upper, { recursive: true, mode: 0o755 });
      likeReality(folder.path, upper);
    }
    return synced;
  }

  /** A layer of an overlay ends where another file system is mounted: a folder there can't be part of the project's. */
  #joined(request: CaptureRequest, live: readonly LiveFolder[]): SharedList {
    if (this.#storage.capabilities.shared === "apart" || live.length === 0) return { root: request.path, folders: [], hidden: [] };
    const mounts = readMounts();
    const place = mountOf(request.path, mounts)?.target;
    const inside = live.filter(({ path }) => isWithin(path, request.path) && mountOf(path, mounts)?.target === place);
    const hidden = request.exclude.filter((path) => inside.some((folder) => isWithin(join(request.path, path), folder.path)));
    return { root: request.path, folders: inside.map(({ path }) => relative(request.path, path)), hidden };
  }

  /** Every layer shows the root's top folder as it is. */
  async #untouched(tip: Tip, root: Root): Promise<undefined> {
    const target = join(tip.folder, "roots", String(root.slot));
    await mkdir(target, { recursive: true, mode: 0o755 });
    likeReality(root.source, target);
  }

  async #freeze(
    request: CaptureRequest,
    parts: Omit<FollowedProject, "base">,
    now: readonly (SyncReport | undefined)[],
    before?: Base,
    twin?: Twin,
  ): Promise<Base> {
    const id = newId("base");
    const { bases } = this.#storage;
    const base = baseOf({ id, project: request.project, takenAt: new Date().toISOString() }, parts, now, before?.readOnly ?? []);
    if (twin === undefined || bases.later === undefined || before === undefined || !isLaunchedAlike(base, before)) {
      await bases.freeze(request.project, id);
      return base;
    }
    await bases.later.freeze(request.project, id, twin);
    twin.offer.became = "brought";
    return { ...base, later: true };
  }

  async #supersede(base: Base): Promise<void> {
    if (this.#forgotten.delete(base.id)) await this.#storage.bases.remove(base.id);
  }

  async staleness(base: Base, request: CaptureRequest): Promise<Staleness> {
    return compareWithReality(
      this.#host,
      base,
      await this.#storage.bases.manifests(base.id),
      await findRoots(request.path, request.data),
      (root) => skipped(request, root, base.live),
    );
  }

  async shared({ live }: Base, key: string): Promise<SharedFolders | null> {
    if (live.length === 0) return null;
    return WatchedFolders.open(
      this.#host,
      key,
      live.map(({ path }) => path),
    );
  }

  async forget(base: string): Promise<void> {
    // The next server removes it.
    if ([...this.#lasting.values()].some(({ id }) => id === base)) return;
    const current = [...this.#followed.values()].some((followed) => followed.base.id === base);
    if (current) this.#forgotten.add(base);
    else await this.#storage.bases.remove(base);
  }

  async #stop(project: string): Promise<void> {
    const followed = this.#followed.get(project);
    this.#followed.delete(project);
    if (followed === undefined) return;
    for (const watch of followed.watches) await watch.stop();
    await this.#supersede(followed.base);
  }

  async close(): Promise<void> {
    for (const project of this.#followed.keys()) await this.#locks.run(project, () => this.#stop(project));
  }
}

function baseOf(
  frozen: Pick<Base, "id" | "project" | "takenAt">,
  parts: Pick<FollowedProject, "roots" | "live" | "synced">,
  now: readonly (SyncReport | undefined)[],
  readOnlyBefore: readonly string[],
): Base {
  const report = makeReport(parts, now, readOnlyBefore);
  return {
    ...frozen,
    roots: parts.roots.roots.map(({ path, slot, kind }) => ({ path, slot, ...(kind === "taken" ? { taken: true as const } : {}) })),
    live: parts.live.map((folder, slot) => ({ ...folder, slot })),
    readOnly: report.readOnly,
    owners: allIds(parts.synced.map(({ owners }) => owners)),
    report,
  };
}

/** Whether a launch would be the same from both. */
function isLaunchedAlike(one: Base, other: Base): boolean {
  const launched = ({ roots, live, readOnly, owners }: Base): string => JSON.stringify({ roots, live, readOnly, owners });
  return launched(one) === launched(other);
}

/** A sync of some folders tells of the owners in those alone; the others are the ones from before. */
function withKnown(found: SyncReport | undefined, before: SyncReport | undefined): SyncReport | undefined {
  if (found === undefined || before === undefined) return found ?? before;
  return { ...found, owners: allIds([found.owners, before.owners]) };
}

/** Paths relative to a root that are not entered. */
function skipped(request: CaptureRequest, root: Pick<Root, "path" | "slot">, live: readonly { path: string }[]): string[] {
  if (root.slot !== 0) {
    const hidden = request.hidden.filter((path) => path !== root.path && isWithin(path, root.path));
    return [...new Set(hidden.map((path) => relative(root.path, path)))].toSorted();
  }
  const shared = live.map((folder) => relative(request.path, folder.path)).filter((path) => !path.startsWith("../"));
  return [...new Set([...shared, ...request.exclude.map((path) => path.replace(/^\.?\/+|\/+$/g, ""))])]
    .filter((path) => path !== "")
    .toSorted();
}

/** Whether what is live must be decided anew. */
function needsNewChoice(request: CaptureRequest, now: readonly (SyncReport | undefined)[], last: readonly SyncReport[]): boolean {
  const [project] = now;
  if (project?.ignoreChanged === true) return true;
  if ((project?.copiedBytes ?? 0) > LIMITS.liveFolderBytes || (project?.changed ?? 0) > LIMITS.liveFolderEntries) return true;
  return (last[0]?.totalBytes ?? 0) > request.limitBytes && project !== undefined;
}

/** Every layer of a stack holds every root: one that the layers below don't know can't be added. */
async function lacksRoots(tip: Tip, { roots }: Roots): Promise<boolean> {
  const manifest = (slot: number): string => `${tip.manifests}${slot}`;
  if (tip.mode !== "layer" || !existsSync(manifest(0))) return false;
  for (let slot = roots.length; existsSync(manifest(slot)); slot += 1) await rm(manifest(slot));
  return roots.some(({ slot }) => !existsSync(manifest(slot)));
}

function identify({ roots }: Roots): string {
  return roots
    .map(({ source }) => lstatSync(source, { throwIfNoEntry: false }))
    .map((found) => `${found?.dev}:${found?.ino}`)
    .join();
}

function isFolder(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
