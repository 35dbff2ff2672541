/** The mount table of this machine. */
import { accessSync, constants, readFileSync } from "node:fs";

export interface Mount {
  readonly target: string;
  readonly type: string;
  readonly source: string;
  /** Device number as "major:minor". */
  readonly device: string;
  /** Which part of the file system is mounted; "/" for all of it. */
  readonly root: string;
  /** The file system takes no changes, as after an error it met. */
  readonly readOnly: boolean;
}

/** File systems that hold files of the machine, as against kernel interfaces, network shares and temporary ones. */
const DISK_TYPES = new Set(["ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "jfs", "bcachefs", "overlay"]);

function unescape(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}

export function parseMounts(mountinfo: string): Mount[] {
  const mounts: Mount[] = [];
  for (const line of mountinfo.split("\n")) {
    const [before, after] = line.split(" - ");
    const [, , device, root, target] = (before ?? "").split(" ");
    const [type, source, options] = (after ?? "").split(" ");
    if (device === undefined || root === undefined || target === undefined || type === undefined) continue;
    mounts.push({
      target: unescape(target),
      type,
      source: unescape(source ?? ""),
      device,
      root: unescape(root),
      readOnly: /^ro\b/.test(options ?? ""),
    });
  }
  return mounts;
}

export function readMounts(): Mount[] {
  return parseMounts(mountTable());
}

/** As the kernel writes it: another text is another table. */
export function mountTable(): string {
  return readFileSync("/proc/self/mountinfo", "utf8");
}

/** Whether the file system of a folder takes no changes, as after an error it met. */
export function isReadOnly(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EROFS";
  }
}

/** The mount a path lies on: the deepest target above it, the newest of equals. */
export function mountOf(path: string, mounts: readonly Mount[]): Mount | undefined {
  let best: Mount | undefined;
  for (const mount of mounts) {
    const inside = mount.target === "/" || path === mount.target || path.startsWith(`${mount.target}/`);
    if (inside && (best === undefined || mount.target.length >= best.target.length)) best = mount;
  }
  return best;
}

/** File systems other than / that hold files of the machine. */
export function diskMounts(mounts: readonly Mount[]): Mount[] {
  const deepest = new Map<string, Mount>();
  for (const mount of mounts) {
    if (mount.target !== "/" && DISK_TYPES.has(mount.type)) deepest.set(mount.target, mount);
  }
  return [...deepest.values()];
}

/** Where else the same folder or file is: a file system may be mounted at several places, as a whole or in parts. */
export function aliasesOf(path: string, mounts: readonly Mount[]): string[] {
  const at = mountOf(path, mounts);
  if (at === undefined) return [];
  const inside = at.target === "/" ? path : path.slice(at.target.length);
  const place = `${at.root === "/" ? "" : at.root}${inside === "/" ? "" : inside}` || "/";
  return mounts.flatMap(({ device, root, target }) => {
    if (device !== at.device || (root !== "/" && place !== root && !place.startsWith(`${root}/`))) return [];
    const rest = root === "/" ? place : place.slice(root.length);
    const alias = `${target === "/" ? "" : target}${rest === "/" ? "" : rest}` || "/";
    return alias === path ? [] : [alias];
  });
}
