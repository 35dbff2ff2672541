/**
 * Disk quotas on btrfs. Simple quotas charge the subvolume that wrote, and a snapshot starts at zero; so every
 * subvolume of a sandbox joins one parent group that carries the limit, and a chain of snapshots cannot escape it.
 */
import { createHash } from "node:crypto";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { CellHost } from "../../../base/host/cell-host.ts";
import { systemOf } from "./kernel.ts";

export class Quotas {
  readonly #host: CellHost;
  readonly #pool: string;

  constructor(host: CellHost, pool: string) {
    this.#host = host;
    this.#pool = pool;
  }

  async enable(): Promise<void> {
    await this.#host.request("btrfs.quota", [["path", this.#pool]]);
  }

  /** The group of a volume: 48 bits of a hash of its id, so it needs no table. */
  group(volume: string): string {
    return `1/${createHash("sha256").update(volume).digest().readUIntBE(0, 6)}`;
  }

  async limit(volume: string, bytes: number): Promise<void> {
    await this.#change(this.group(volume), "limit", bytes);
  }

  async usage(volume: string): Promise<number> {
    const reply = await this.#host.request("btrfs.usage", [
      ["path", this.#pool],
      ["qgroup", this.group(volume)],
    ]);
    return reply.number("bytes") ?? 0;
  }

  /** Removes the groups of all other volumes. One whose data lives on in a fork is refused by the kernel and stays. */
  async removeOthers(volumes: readonly string[]): Promise<void> {
    const kept = new Set(volumes.map((volume) => this.group(volume)));
    for (const group of listGroups(this.#pool)) {
      if (!kept.has(group)) await this.#change(group, "delete").catch(() => undefined);
    }
  }

  async #change(group: string, action: "limit" | "delete", bytes?: number): Promise<void> {
    await this.#host.request("btrfs.qgroup", [
      ["path", this.#pool],
      ["qgroup", group],
      ["action", action],
      ...(bytes === undefined ? [] : [["bytes", String(bytes)] as const]),
    ]);
  }
}

/** The parent groups of the file system a folder lies on, from the kernel's own list. */
function listGroups(folder: string): string[] {
  const system = systemOf(folder);
  const groups = system === undefined ? "" : join(system, "qgroups");
  if (!existsSync(groups)) return [];
  return readdirSync(groups)
    .filter((name) => name.startsWith("1_"))
    .map((name) => name.replace("_", "/"));
}
