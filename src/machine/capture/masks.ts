/** Mask layers: built once for every plan, named by its hash, and mounted between reality and the sandbox's volume. */
import { createHash } from "node:crypto";
import { existsSync, lstatSync, mkdirSync, readdirSync, renameSync } from "node:fs";
import { basename, join } from "node:path";
import type { CellHost } from "../../base/host/cell-host.ts";
import { joinParts } from "../../base/host/frames.ts";
import { mountOf, readMounts, type Mount } from "../../base/host/mounts.ts";
import { mountTmpfs, unmountTmpfs } from "../../base/host/tmpfs.ts";
import type { SharedList } from "../volumes/shared.ts";
import { MachineWatch } from "./machine-watch.ts";
import { type MaskEntry, MaskPlan, type MaskRequest, placesOf } from "./mask.ts";
import type { PlaceholderOf } from "./logins.ts";
import { homeFolders, readPeople } from "./people.ts";
import { sharedEntries } from "./shared-layer.ts";

export interface Layer {
  /** Folder of the layer. */
  readonly path: string;
  /** Folders inside hidden ones that need an overlay of their own, because the layer can't show them. */
  readonly through: readonly string[];
  /** What is hidden, emptied or replaced, also what is not there yet. */
  readonly masked: readonly string[];
  readonly entries: readonly MaskEntry[];
  /** The mount table that it was made for: another table makes another layer. */
  readonly mounts: readonly Mount[];
}

export interface MaskOptions {
  readonly host: CellHost;
  /** Where layers are kept, on a tmpfs where its file system can't hold them. */
  readonly folder: string;
  /** Whether this process may mount one. */
  readonly mounts: boolean;
  /** What that one is called, so that it is not taken for another server's. */
  readonly mountName: string;
  /** Vivarium's own folders and files: state, config. */
  readonly own: readonly string[];
  /** Folders in those that sandboxes see; they are there before the first sandbox is. */
  readonly ownShown: readonly string[];
  readonly mode: "root" | "user";
  /** Placeholders for logins in settings files; `version` changes with them. */
  readonly standIns?: () => { readonly find: PlaceholderOf; readonly version: number } | undefined;
}

/** Made by the launcher in every sandbox. */
const MADE = ["/proc", "/sys", "/dev", "/run"];
/** How long a plan is good on a machine that does not change: for what the watch does not see, such as settings of homes. */
const FRESH_MS = 60_000;
/** Looking takes long for a server that does nothing else meanwhile, so it is done ahead, behind the request that showed the need. */
const RENEW_MS = FRESH_MS / 2;
const QUIET_MS = 20;
/** Name of a mask layer, or of a layer with shared folders that was made for it. */
const NAME = /^([0-9a-f]{32})(-[0-9a-f]{32})?$/;
const TRASH = ".trash-";

interface Known {
  readonly until: number;
  readonly layer: Promise<Layer>;
  renewing: boolean;
}

export class MaskLayers {
  readonly #options: MaskOptions;
  readonly #machineWatch: MachineWatch;
  readonly #known = new Map<string, Known>();
  /** Names of layers that a launch may be about to use, and until when. */
  readonly #recent = new Map<string, number>();

  private constructor(options: MaskOptions) {
    this.#options = options;
    this.#machineWatch = new MachineWatch(options.host, options.own);
  }

  static async open(options: MaskOptions): Promise<MaskLayers> {
    mkdirSync(options.folder, { recursive: true, mode: 0o700 });
    // The kernel refuses lower layers that contain each other (ELOOP), and whiteouts on an overlay.
    const contained = options.mode === "root" && lstatSync(options.folder).dev === lstatSync("/").dev;
    const overlaid = mountOf(options.folder, readMounts())?.type === "overlay";
    if (options.mounts && (contained || overlaid)) await mountTmpfs(options.folder, "64m", options.mountName);
    return new MaskLayers(options);
  }

  /** For the machine as it is when this is asked. */
  async layer(request: MaskRequest): Promise<Layer> {
    const machine = await this.#machineWatch.version();
    const { home, project, mask, expose } = request;
    const key = JSON.stringify([home, project, mask, placesOf(request), expose, machine, this.#options.standIns?.()?.version]);
    const now = performance.now();
    const known = this.#known.get(key);
    if (known !== undefined && known.until > now) {
      if (!known.renewing && known.until - now < RENEW_MS) this.#renew(key, known, request);
      return known.layer;
    }
    for (const [old, { until }] of this.#known) if (until < now) this.#known.delete(old);
    const layer = this.#build(request);
    this.#known.set(key, { until: now + FRESH_MS, layer, renewing: false });
    layer.catch(() => this.#known.delete(key));
    return layer;
  }

  /** What can't be renewed is built, or refused, when it is asked for. */
  #renew(key: string, known: Known, request: MaskRequest): void {
    known.renewing = true;
    setTimeout(() => {
      const until = performance.now() + FRESH_MS;
      const layer = this.#build(request);
      layer.then(
        () => this.#known.set(key, { until, layer, renewing: false }),
        () => undefined,
      );
    }, QUIET_MS).unref();
  }

  /** Removes the layers that no sandbox has mounted. Every project and every change of the machine makes one, and the place is small. */
  async sweep(mounted: ReadonlySet<string>): Promise<void> {
    const { host, folder } = this.#options;
    const now = performance.now();
    for (const [name, until] of this.#recent) if (until < now) this.#recent.delete(name);
    const trash: string[] = [];
    // Without a pause up to here, so that no launch comes between: what is mounted must stay, or it hides nothing any more.
    for (const name of readdirSync(folder)) {
      if (name.startsWith(TRASH)) trash.push(join(folder, name));
      const layer = NAME.exec(name)?.[1];
      if (layer === undefined || mounted.has(layer) || this.#recent.has(layer)) continue;
      renameSync(join(folder, name), join(folder, TRASH + name));
      trash.push(join(folder, TRASH + name));
    }
    for (const path of trash) await host.request("remove", [["path", path]]);
  }

  /** The layers are only needed while sandboxes are made; `idle` tells that none has one mounted. */
  async close(idle: boolean): Promise<void> {
    if (idle) await unmountTmpfs(this.#options.folder, this.#options.mountName);
  }

  async #build(request: MaskRequest): Promise<Layer> {
    const { mode, own, ownShown, standIns } = this.#options;
    const standIn = standIns?.()?.find ?? (() => undefined);
    const mounts = readMounts();
    const plan = new MaskPlan(request, { homes: homeFolders(readPeople(), [request.home]), own, ownShown, made: MADE, mounts, standIn });
    const isApart = (path: string): boolean => mode === "user" || (mountOf(path, mounts)?.target ?? "/") !== "/";
    const entries = plan.entries();
    const encoded = entries.map((entry) => encode(entry, isApart(entry.path) ? undefined : entry.path));
    const name = nameOf(mode, encoded);
    this.#recent.set(name, performance.now() + 2 * FRESH_MS);
    const path = await this.#make(name, encoded);
    return { path, through: plan.through().filter(isApart), masked: plan.masked(), entries, mounts };
  }

  /** The layer that shows folders of a project below its volume, at `place`, with what a mask says of them. */
  async shared(layer: Layer, place: string, list: SharedList): Promise<string> {
    const encoded = sharedEntries(place, list, layer.entries).map(({ entry, redirect }) => encode(entry, redirect));
    return this.#make(`${basename(layer.path)}-${nameOf(this.#options.mode, encoded)}`, encoded);
  }

  async #make(name: string, entries: readonly Buffer[]): Promise<string> {
    const { host, folder, mode } = this.#options;
    const path = join(folder, name);
    if (existsSync(path)) return path;
    const names = mode === "user" ? [["userxattr", "1"] as const] : [];
    await host.request("mask", [["path", path], ...names, ...entries.map((entry) => ["entry", entry] as const)]).catch((error: unknown) => {
      // Another launch built the same layer meanwhile.
      if (!existsSync(path)) throw error;
    });
    return path;
  }
}

function nameOf(mode: string, entries: readonly Buffer[]): string {
  const hash = createHash("sha256").update(mode);
  for (const entry of entries) hash.update(entry).update("\0");
  return hash.digest("hex").slice(0, 32);
}

/**
 * A folder shown inside a hidden one is a redirect. Those of an ordinary user are not followed, and none leads to another
 * file system: there the folder is mounted apart, over what the layer says of it.
 */
function encode(entry: MaskEntry, redirect: string | undefined): Buffer {
  if (entry.kind === "hide") return joinParts(["hide", entry.path]);
  if (entry.kind === "link") return joinParts(["link", entry.path, entry.target]);
  const like = [String(entry.like.uid), String(entry.like.gid), entry.like.mode.toString(8)];
  if (entry.kind === "file") return joinParts(["file", entry.path, ...like, entry.content]);
  if (entry.kind !== "through") return joinParts([entry.kind, entry.path, ...like]);
  return redirect === undefined ? joinParts(["dir", entry.path, ...like]) : joinParts(["through", entry.path, ...like, redirect]);
}
