/**
 * Copy-on-write disks of sandboxes, and the bases they start from.
 *
 * A volume is a folder with a fixed inside:
 *   system/upper, system/work      what the sandbox changed outside the project (overlay upper over reality's /)
 *   roots/<n>                      captured folders; 0 is the project, others are data of services
 *   live/<n>/upper, live/<n>/work  changes to folders shared live with reality
 *   shared.json                    which folders of the project are shared live as part of it; never mounted
 *   slots.json                     which folders of the machine the slots beyond those of the base serve; never mounted
 *   manifests/<n>                  what capture saw in reality; never mounted
 * A base and a snapshot are frozen volumes. Everything inside a volume was written by a sandbox and is hostile:
 * no program on the host follows a path in it.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { readShared, type SharedList } from "./shared.ts";
import { readSlots } from "./slots.ts";

/** The number of the project among a volume's roots. */
export const PROJECT_SLOT = 0;
/** The number of live folders every volume has room for. */
export const LIVE_SLOTS = 16;

export interface VolumeCapabilities {
  /** hard: the storage refuses to write over the quota. watched: someone must look. */
  readonly quota: "hard" | "watched";
  /** direct: roots/<n> is mounted as it is. overlay: roots/<n>/{upper,work} lie over the base's layers. */
  readonly roots: "direct" | "overlay";
  /** joined: folders shared live lie below the project, as part of it. apart: each is mounted over it. */
  readonly shared: "joined" | "apart";
}

/** Where capture writes what changed in reality. */
export interface Tip {
  /** Folder that holds roots/<n>. */
  readonly folder: string;
  /** tip: a full copy changed in place. layer: a new folder that gets only changes. */
  readonly mode: "tip" | "layer";
  /** Prefix of manifest files; capture appends the root's number. */
  readonly manifests: string;
}

export interface VolumePaths {
  /** The volume's own folder. */
  readonly folder: string;
  /** Frozen layers below roots, topmost first; empty where roots are direct. Each holds roots/<n>. */
  readonly layers: readonly string[];
}

export interface VolumeKeep {
  readonly volumes: ReadonlySet<string>;
  readonly snapshots: ReadonlySet<string>;
  readonly bases: ReadonlySet<string>;
  readonly projects: ReadonlySet<string>;
}

/** A captured folder as it was and as it is; `new` is hostile and only native code looks into it. */
export interface FolderSides {
  /** Frozen folders, topmost first. */
  readonly old: readonly string[];
  readonly new: string;
  /** `new` is the upper folder of an overlay over `old`. */
  readonly overlay: boolean;
  /** Folders of `new` that reality's show through, and that are not compared: `new` is the upper folder of an overlay over them. */
  readonly shared?: SharedList;
  /** If given, only this folder is compared; of an overlay alone. */
  readonly at?: string;
  /** Where `old` is not the base to compare with: that one's own folders, and the way from it to `old`. */
  readonly before?: { readonly base: readonly string[]; readonly way: BaseSteps };
}

/** The way from one base to another: steps that were gone forth and are to be turned round, then steps forth. */
export interface BaseSteps {
  readonly back: readonly FolderSides[];
  readonly forth: readonly FolderSides[];
}

/** A part of what lies outside the project: reality as it is now, and what the sandbox wrote over it. */
export interface SystemPart {
  readonly at: string;
  readonly sides: FolderSides;
}

/** The system itself, then disks and folders that are mounted apart. */
export function systemParts(volume: string): SystemPart[] {
  const apart = [...(readSlots(volume) ?? [])].filter(([path]) => existsSync(path));
  return [
    { at: "/", sides: { old: ["/"], new: join(volume, "system", "upper"), overlay: true } },
    ...apart.map(([path, slot]) => ({ at: path, sides: liveSides(volume, { path, slot }) })),
  ];
}

export function liveSides(volume: string, { path, slot }: LiveSlot): FolderSides {
  const shared = readShared(volume);
  const at = shared?.folders.find((folder) => join(shared.root, folder) === path);
  if (shared !== undefined && at !== undefined)
    return { old: [shared.root], new: join(volume, "roots", String(PROJECT_SLOT)), overlay: true, at };
  return { old: [path], new: join(volume, "live", String(slot), "upper"), overlay: true };
}

/** A folder of reality that a sandbox writes its own changes over. */
export interface LiveSlot {
  readonly path: string;
  readonly slot: number;
}

export type VolumeOrSnapshot = { readonly volume: string } | { readonly snapshot: string };

export type VolumeSource = { readonly base: string; readonly project: string } | { readonly snapshot: string };

export interface Volumes {
  readonly name: "btrfs" | "plain" | "folder";
  readonly capabilities: VolumeCapabilities;

  /** The project's tip, made if it is not there. `fresh` throws the old one away first. Serialised by the caller per project. */
  openTip(project: string, fresh: boolean): Promise<Tip>;
  /** Freezes the tip as it is now into a base. Complete or absent after a crash. */
  freeze(project: string, base: string): Promise<void>;
  /** Prefix of the manifests a base was frozen with; the root's number is appended. */
  manifests(base: string): string;
  /** A new volume from a base or a snapshot. Complete or absent. */
  create(volume: string, source: VolumeSource, diskBytes: number): Promise<VolumePaths>;
  paths(volume: string): Promise<VolumePaths>;
  /** The folders to compare to tell what a volume or a snapshot of it changed in a captured folder. */
  sides(of: VolumeOrSnapshot, base: string, slot: number): Promise<FolderSides>;
  /** The same for a folder of the project that is shared live. */
  live(of: VolumeOrSnapshot, folder: LiveSlot): FolderSides;
  /** The same for everything outside the project. */
  system(of: VolumeOrSnapshot): SystemPart[];
  /** What leads from one base of a project to another, for a captured folder. */
  between(from: string, to: string, slot: number): Promise<BaseSteps>;
  /** A frozen copy of the volume as it is now. The caller has written back and frozen the processes. */
  snapshot(volume: string, snapshot: string): Promise<void>;
  /** What tells a snapshot as it is now from anything else. Kept by the caller, and given back to verify(). */
  seal(snapshot: string): Promise<string>;
  /** Throws `snapshot_damaged` when a snapshot is gone, or is not what was sealed; without a seal, as far as can be checked. */
  verify(snapshot: string, seal: string | undefined): Promise<void>;
  /** Replaces the volume's content by the snapshot's, or brings back one that was removed. Nothing may be mounted from it. */
  rollback(volume: string, snapshot: string): Promise<void>;
  /** Removes a volume, snapshot or base; at once for the caller, in the background for the disk. Absent is fine. */
  remove(kind: "volume" | "snapshot" | "base", id: string): Promise<void>;
  /** Bytes of its own, snapshots included. Cheap on btrfs, a walk on plain. */
  usage(volume: string): Promise<number>;
  /** Changes the quota of a volume. */
  limit(volume: string, diskBytes: number): Promise<void>;
  /** Space of the storage, after growing it if that is possible and needed. */
  free(): Promise<{ totalBytes: number; freeBytes: number }>;
  /**
   * Removes every volume, snapshot, base and tip that is not kept, and half-made ones; says what it removed.
   * What this process made itself is left to remove(), so that nothing is lost that was made after `keep` was put together.
   */
  reconcile(keep: VolumeKeep): Promise<string[]>;
  /** Writes back a volume's dirty data, so that a snapshot is quick. */
  writeBack(volume: string): Promise<void>;
  /** How many errors of the disk below the storage has met, ever; undefined where it can't tell. */
  errors(): number | undefined;
  /** Storage that an error of the disk below has stopped; absent where that can't happen. */
  readonly repair?: {
    /** Whether it is stopped, and can be brought back now. */
    due(): boolean;
    /** Brings it back as it was before the error. Nothing may use it. */
    run(): Promise<void>;
  };
  /** Waits for removals in the background. Volumes stay; `idle` tells that no sandbox uses one now. */
  close(idle: boolean): Promise<void>;
}
