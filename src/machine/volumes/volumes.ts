/**
 * Storage of sandboxes: their copy-on-write disks, and the bases they start from. It has five ports, each in the file of
 * its name: bases, disks, snapshots, comparison, health. A user takes the ports it needs. Every storage passes one contract
 * suite (test/support/storage-contract.ts); differences are capability data.
 *
 * A volume is a folder with a fixed inside:
 *   system/upper, system/work      what the sandbox changed outside the project (overlay upper over reality's /)
 *   roots/<n>                      captured folders; 0 is the project, others are data of services
 *   live/<n>/upper, live/<n>/work  changes to folders shared live with reality
 *   shared.json                    which folders of the project are shared live as part of it; never mounted
 *   slots.json                     which folders of the machine the slots beyond those of the base serve; never mounted
 *   manifests/<n>                  what capture saw in reality; never mounted
 * A base and a snapshot are frozen volumes.
 *
 * What holds for all ports:
 * - Callers choose the ids. Only ids become paths; anything else is refused as `internal`.
 * - What makes or replaces something does it completely or not at all, also when the server is killed meanwhile. What was
 *   half-made is never found under its id, and health.reconcile() removes it.
 * - What a call has made outlives the server. Nothing here keeps state that can't be found again on the disk.
 * - Callers do one thing at a time with a volume, and with a project's tip. reconcile() may run beside all of it.
 * - Everything inside a volume was written by a sandbox and is hostile: host code follows no path in it.
 */
import { join } from "node:path";
import type { Bases } from "./bases.ts";
import type { Comparison } from "./comparison.ts";
import type { Disks } from "./disks.ts";
import type { StorageHealth } from "./health.ts";
import type { Snapshots } from "./snapshots.ts";

/** The number of the project among a volume's roots. */
export const PROJECT_SLOT = 0;
/** Where a volume, base, snapshot or layer holds the project. */
export function projectIn(folder: string): string {
  return join(folder, "roots", String(PROJECT_SLOT));
}

/** The number of live folders every volume has room for. */
export const LIVE_SLOTS = 16;

/** What one storage does otherwise than another. */
export interface StorageCapabilities {
  /** hard: the storage refuses to write over the quota. watched: the server must look. */
  readonly quota: "hard" | "watched";
  /** direct: roots/<n> is mounted as it is. overlay: roots/<n>/{upper,work} lie over the base's layers. */
  readonly roots: "direct" | "overlay";
  /** joined: folders shared live lie below the project, as part of it. apart: each is mounted over it. */
  readonly shared: "joined" | "apart";
  /** machine: a volume holds the whole inside above. project: roots/0 alone, and nothing is compared outside of it. */
  readonly holds: "machine" | "project";
}

export interface Storage {
  /** For people. */
  readonly name: "btrfs" | "plain" | "folder";
  readonly capabilities: StorageCapabilities;
  readonly bases: Bases;
  readonly disks: Disks;
  readonly snapshots: Snapshots;
  readonly comparison: Comparison;
  readonly health: StorageHealth;
  /** Waits for removals in the background. Volumes stay; `idle` tells that no sandbox uses one now. */
  close(idle: boolean): Promise<void>;
}
