/** Composes the mounts of a sandbox, as native/PROTOCOL.md (launch) understands them. */
import { existsSync, lstatSync, readlinkSync, type Stats } from "node:fs";
import { basename, dirname, join } from "node:path";
import { diskMounts, mountOf, type Mount } from "../../../base/host/mounts.ts";
import { linksTo, realPlace } from "../../../base/host/real-place.ts";
import type { Layer } from "../../capture/masks.ts";
import type { SharedList } from "../../volumes/shared.ts";
import { PROJECT_SLOT } from "../../volumes/volumes.ts";
import type { VolumePaths } from "../../volumes/disks.ts";
import type { LaunchContent } from "../drivers.ts";
import { Slots } from "./slots.ts";
import type { UserFolder } from "./user-folders.ts";

/** A launch whose volume is there. */
export type PlanRequest = Omit<LaunchContent, "volume"> & { readonly volume: VolumePaths };

export type Field = readonly [key: string, value: string];

/** Folders that lie below the project's volume, and the layer that shows them. */
export interface SharedFoldersLayer extends SharedList {
  readonly layer: string;
}

/** Where the launcher builds the new root. An ordinary user's trees are no clones: what is mounted there covers what lies in it. */
const STACK = "/tmp";
/** Empty folders that an ordinary user's sandbox has, unless they are links in reality. */
const MADE: readonly (readonly [path: string, mode: string])[] = [
  ["/home", "755"],
  ["/root", "700"],
  ["/mnt", "755"],
];
/** What programs write to on a read-only system. As root in memory: it counts as the sandbox's, and no snapshot has it. */
const TEMPORARY = ["/tmp", "/var/tmp"];
const PART = "\x1f";
const parts = (...values: string[]): string => values.join(PART);

/** Root mode: one overlay over /, one per further disk file system, then the project and what is shared live. */
export function rootPlan(request: PlanRequest, mask: Layer, mounts: readonly Mount[], joined?: SharedFoldersLayer): Field[] {
  const trees = new Trees(mounts, [
    ["mask", mask.path],
    ["vol", request.volume.folder],
  ]);
  const slots = slotsOf(request);
  const steps = [parts("overlay", "/", "@vol/system/upper", "@vol/system/work", "@mask", trees.at("/"))];
  if (request.readOnly) steps.push(...TEMPORARY.map((path) => parts("tmpfs", path, "1777", "")));
  for (const disk of foreignDisks(request, mask, mounts)) steps.push(...slotMount(disk.target, mask, slots, trees));
  steps.push(...throughMounts(mask, slots, trees));
  const project = projectMounts(request, mask, trees, joined);
  const readOnly = closed(request, steps, project);
  steps.push(...project);
  slots.save();
  return [...finish(trees, "overlay", steps), ...readOnly];
}

/** User mode: an empty root and an overlay for each folder of the system, or for those in it where it holds a mount. */
export function userPlan(request: PlanRequest, mask: Layer, mounts: readonly Mount[], folders: readonly UserFolder[]): Field[] {
  const given = [["mask", mask.path] as const, ["vol", request.volume.folder] as const];
  const trees = new Trees(mounts, given, STACK);
  const slots = slotsOf(request);
  const overlay = (path: string, ...lowers: string[]): string =>
    parts("overlay", path, `@vol/system/upper${path}`, `@vol/system/work${path}`, ...lowers);
  const steps = folders.flatMap((folder) => {
    const { kind, path } = folder;
    if (kind === "symlink") return [parts("symlink", path, folder.target)];
    if (kind === "dir") return [parts("dir", path, "755")];
    const [first, ...rest] = lowersOf(mask, path, () => (kind === "file" ? trees.file(path) : trees.at(path)));
    if (first === undefined) return [];
    return [kind === "file" ? parts("bind", path, first, "ro,file") : overlay(path, first, ...rest)];
  });
  const shown = new Set(folders.map(({ path }) => path));
  steps.push(
    ...MADE.filter(([path]) => !shown.has(path)).map(([path, mode]) => parts("dir", path, mode)),
    parts("bind", "/tmp", "@vol/system/upper/tmp", "rw"),
  );
  // Of the home only what the mask put there: settings without their secrets.
  const home = realPlace(request.home);
  if (home !== "/") {
    const settings = existsSync(join(mask.path, home));
    steps.push(settings ? overlay(home, `@mask${home}`) : parts("bind", home, `@vol/system/upper${home}`, "rw"));
  }
  for (const link of linksTo(request.home)) {
    if (link.startsWith("/home/") && !shown.has("/home")) steps.push(parts("symlink", link, readlinkSync(link)));
  }
  steps.push(...throughMounts(mask, slots, trees));
  const project = projectMounts(request, mask, trees);
  const readOnly = closed(request, [...steps, parts("overlay", "/")], project);
  steps.push(...project);
  slots.save();
  return [...finish(trees, "tmpfs", steps), ...readOnly];
}

/** Where the system can be read alone: its mounts, and those of the project where it is sealed. What is no mount of its own is closed with the one it lies in. */
function closed({ readOnly, sealed, home }: PlanRequest, steps: readonly string[], project: readonly string[]): Field[] {
  if (!readOnly) return [];
  const own = realPlace(home);
  const split = (all: readonly string[]): string[][] => all.map((step) => step.split(PART));
  const system = split(steps).filter(([kind, path]) => kind === "overlay" || (kind === "bind" && path === own));
  // Single files are read-only anyway, and what begins with @ is mounted only to be shown elsewhere.
  const shown = sealed ? split(project).filter(([, path = "", , mode]) => path.startsWith("/") && mode !== "ro,file") : [];
  return [...system, ...shown].map(([, path = ""]): Field => ["read_only", path]);
}

function finish(trees: Trees, root: "overlay" | "tmpfs", steps: readonly string[]): Field[] {
  return [...trees.fields(), ["root", root], ...steps.map((step): Field => ["mount", step])];
}

/**
 * The layers of a mount: what the mask says of the place, then reality. None where it is hidden. The root of a layer is
 * merged with those below whatever its attributes say, so reality is left out where the mask empties or replaces it.
 */
function lowersOf(mask: Layer, path: string, reality: () => string): string[] {
  const over = inLayer(mask, path);
  if (over === undefined) return [reality()];
  if (!over.isDirectory() && !over.isFile()) return [];
  return mask.masked.includes(path) ? [`@mask${path}`] : [`@mask${path}`, reality()];
}

/** What the mask has at a path, or what hides the folder it would lie in. */
function inLayer(mask: Layer, path: string): Stats | undefined {
  try {
    return lstatSync(join(mask.path, path), { throwIfNoEntry: false });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOTDIR") throw error;
    return inLayer(mask, dirname(path));
  }
}

/** Folders below system/upper and system/work that user mode needs before its launch. */
export function userModeFolders(folders: readonly UserFolder[], home: string): string[] {
  const overlaid = [...folders.filter(({ kind }) => kind === "overlay").map(({ path }) => path), realPlace(home)];
  return [...overlaid.flatMap((path) => [`system/upper${path}`, `system/work${path}`]), "system/upper/tmp"];
}

/** Names host folders as trees: one per mount that is used, and the ones given. */
class Trees {
  readonly #mounts: readonly Mount[];
  readonly #paths: Map<string, string>;
  readonly #names = new Map<string, string>();
  /** A folder that is out of sight by the time a path in it is opened, unless the tree begins below it. */
  readonly #covered: string | undefined;

  constructor(mounts: readonly Mount[], given: readonly (readonly [name: string, path: string])[], covered?: string) {
    this.#covered = covered;
    this.#mounts = mounts;
    this.#paths = new Map(given);
  }

  fields(): Field[] {
    return [...this.#paths].map(([name, path]): Field => ["tree", parts(name, path)]);
  }

  /** A path of reality as a place in a tree. */
  at(path: string): string {
    const target = this.#treeOf(path);
    const name = this.#names.get(target) ?? `fs${this.#names.size}`;
    this.#names.set(target, name);
    this.#paths.set(name, target);
    const rest = target === "/" ? path : path.slice(target.length);
    return `@${name}${rest === "/" ? "" : rest}`;
  }

  #treeOf(path: string): string {
    const target = mountOf(path, this.#mounts)?.target ?? "/";
    const covered = `${this.#covered ?? ""}/`;
    if (covered === "/" || !path.startsWith(covered) || target.startsWith(covered)) return target;
    const [first = ""] = path.slice(covered.length).split("/");
    return covered + first;
  }

  /** A file of reality, also one that is a mount itself: such a mount is no tree. */
  file(path: string): string {
    return `${this.at(dirname(path))}/${basename(path)}`;
  }

  /** A folder that is a tree of its own. */
  own(name: string, path: string): string {
    this.#paths.set(name, path);
    return `@${name}`;
  }
}

function slotsOf({ volume, base }: PlanRequest): Slots {
  return new Slots(
    volume.folder,
    base.live.map(({ slot }) => slot),
  );
}

/** File systems that take an id-mapped mount. Another one is left out: it would keep every sandbox from being launched. */
const ID_MAPPED = new Set(["ext4", "xfs", "btrfs", "f2fs"]);

/** Disk file systems that are part of the machine the sandbox sees. What lies below a masked folder is masked with it. */
function foreignDisks(request: PlanRequest, mask: Layer, mounts: readonly Mount[]): Mount[] {
  const hidden = ["/mnt", "/media", "/run", "/boot", "/proc", "/sys", "/dev", "/tmp"];
  const inside = (path: string, folder: string): boolean => path === folder || path.startsWith(`${folder}/`);
  const system = mountOf("/", mounts)?.type;
  const covered = (path: string): boolean =>
    mask.masked.some((folder) => inside(path, folder)) && !request.expose.some((shown) => inside(path, shown));
  return diskMounts(mounts)
    .filter((disk) => (ID_MAPPED.has(disk.type) || disk.type === system) && !covered(disk.target))
    .filter((disk) => !hidden.some((folder) => inside(disk.target, folder)))
    .filter(
      (disk) => !inside(mask.path, disk.target) && !inside(request.volume.folder, disk.target) && !inside(disk.target, request.project),
    )
    .filter((disk) => lstatSync(disk.target).isDirectory())
    .toSorted((left, right) => left.target.length - right.target.length);
}

function throughMounts(mask: Layer, slots: Slots, trees: Trees): string[] {
  return mask.through.flatMap((path) => slotMount(path, mask, slots, trees));
}

function slotMount(path: string, mask: Layer, slots: Slots, trees: Trees): string[] {
  const lowers = lowersOf(mask, path, () => trees.at(path));
  const slot = lowers.length === 0 ? undefined : slots.take(path);
  return slot === undefined ? [] : [parts("overlay", path, `${slot}/upper`, `${slot}/work`, ...lowers)];
}

function projectMounts(request: PlanRequest, mask: Layer, trees: Trees, joined?: SharedFoldersLayer): string[] {
  const { base, volume } = request;
  const layers = volume.layers.map((layer, index) => trees.own(`layer${index}`, layer));
  const roots = base.roots.flatMap(({ path, slot }) => {
    const place = `@vol/roots/${slot}`;
    if (slot === PROJECT_SLOT && joined !== undefined) return joinedMounts(path, request, joined, trees);
    if (layers.length === 0) return [parts("bind", path, place, "rw")];
    return [parts("overlay", path, `${place}/upper`, `${place}/work`, ...layers.map((layer) => `${layer}/roots/${slot}`))];
  });
  const live = apartFrom(joined, base.live).flatMap(({ path, slot }) => {
    const lowers = lowersOf(mask, path, () => trees.at(path));
    return lowers.length === 0 ? [] : [parts("overlay", path, `@vol/live/${slot}/upper`, `@vol/live/${slot}/work`, ...lowers)];
  });
  return [...roots, ...live, ...base.readOnly.map((path) => parts("bind", path, trees.at(path), "ro,file"))];
}

/**
 * The project as an overlay: above what the sandbox has of it, below the folders that are shared with reality. So these can
 * be removed, replaced and renamed, which the kernel refuses for a folder that something is mounted on. The root of an
 * overlay shows the roots of all its layers, so the project lies one folder deeper.
 */
function joinedMounts(path: string, { base }: PlanRequest, joined: SharedFoldersLayer, trees: Trees): string[] {
  const slot = base.live.find((folder) => !apartFrom(joined, [folder]).includes(folder))?.slot ?? 0;
  const reality = existsSync(path) ? [trees.at(path)] : [];
  return [
    parts("overlay", "@project", "@vol/roots", `@vol/live/${slot}/work`, trees.own("shared", joined.layer), ...reality),
    parts("bind", path, `@project/${PROJECT_SLOT}`, "rw"),
  ];
}

function apartFrom<T extends { readonly path: string }>(joined: SharedFoldersLayer | undefined, live: readonly T[]): readonly T[] {
  return joined === undefined ? live : live.filter(({ path }) => !joined.folders.some((folder) => join(joined.root, folder) === path));
}
