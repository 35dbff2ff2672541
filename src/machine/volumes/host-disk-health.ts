/** The health of storage in ordinary folders: their space is that of the host's disk, which keeps no count of its errors. */
import { statfsSync } from "node:fs";
import type { StorageHealth, VolumeKeep } from "./health.ts";
import { spareHostBytes } from "./space.ts";

export class HostDiskHealth implements StorageHealth {
  readonly #folder: string;
  readonly reconcile: (keep: VolumeKeep) => Promise<string[]>;

  constructor(folder: string, reconcile: (keep: VolumeKeep) => Promise<string[]>) {
    this.#folder = folder;
    this.reconcile = reconcile;
  }

  async free(): Promise<{ totalBytes: number; freeBytes: number }> {
    const found = statfsSync(this.#folder);
    return { totalBytes: found.blocks * found.bsize, freeBytes: Math.max(0, spareHostBytes(this.#folder)) };
  }

  /** A file that can't be read says so to the caller that reads it. */
  errors(): undefined {
    return undefined;
  }
}
