/** Whether this machine can take one more sandbox (LIM-4), and what limits it gets. */
import { readFileSync } from "node:fs";
import { freemem, totalmem } from "node:os";
import { givenTo, runTimeCeiling, type Ceiling } from "../../base/policy/ceiling.ts";
import type { ProjectConfig, UserConfig } from "../../base/schema/config.ts";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { Limits } from "../../base/schema/sandbox.ts";
import type { SandboxRow } from "../../base/store/rows.ts";
import type { StorageHealth } from "../../machine/volumes/health.ts";

const MEBIBYTE = 1024 ** 2;
/** Free space and memory change slowly against the time a create takes. */
const LOOK_AGAIN_MS = 250;

export function freeMemory(): { totalBytes: number; freeBytes: number } {
  if (process.platform !== "linux") return { totalBytes: totalmem(), freeBytes: freemem() };
  const text = readFileSync("/proc/meminfo", "utf8");
  const value = (key: string): number => Number(new RegExp(`^${key}:\\s+(\\d+) kB`, "m").exec(text)?.[1] ?? 0) * 1024;
  return { totalBytes: value("MemTotal"), freeBytes: value("MemAvailable") };
}

export class Admission {
  readonly #ceiling: number;
  #looked = Number.NEGATIVE_INFINITY;
  #disk = { totalBytes: 0, freeBytes: 0 };
  #memory = { totalBytes: 0, freeBytes: 0 };

  constructor(user: UserConfig) {
    this.#ceiling = user.ceilings.sandboxes ?? LIMITS.maxSandboxes;
  }

  /** Throws when there are as many sandboxes as may be. To be asked right before one more is counted. */
  refuseAbove(existing: number): void {
    if (existing < this.#ceiling) return;
    throw new VivError("no_capacity", `There are ${existing} sandboxes, and the ceiling of this machine is ${this.#ceiling}.`);
  }

  /** Throws when memory or disk leave no room for one more. */
  async admit(health: StorageHealth): Promise<void> {
    if (performance.now() - this.#looked > LOOK_AGAIN_MS) {
      this.#disk = await health.free();
      this.#memory = freeMemory();
      this.#looked = performance.now();
    }
    if (this.#memory.freeBytes < LIMITS.minFreeMemoryBytes) {
      throw new VivError("no_capacity", `Only ${Math.round(this.#memory.freeBytes / MEBIBYTE)} MiB of memory are free on this machine.`);
    }
    const needed = Math.min(LIMITS.minFreeDiskBytes, this.#disk.totalBytes * LIMITS.minFreeDiskShare);
    if (this.#disk.freeBytes < needed) {
      throw new VivError("disk_full", `Only ${Math.round(this.#disk.freeBytes / MEBIBYTE)} MiB of disk are free for sandboxes.`);
    }
  }
}

/** Asked, else configured, else the default; never over the user's ceiling. */
export function effectiveLimits(
  asked: { readonly [Key in keyof Limits]?: Limits[Key] | undefined } | undefined,
  config: Pick<ProjectConfig, "limits">,
  user: Pick<UserConfig, "ceilings">,
): Limits {
  const { ceilings } = user;
  const choose = (
    key: string,
    wish: number | undefined,
    configured: number | undefined,
    fallback: number,
    ceiling: number | undefined,
  ): number => {
    if (wish !== undefined && ceiling !== undefined && wish > ceiling) {
      throw new VivError("invalid_input", `${key} ${wish} is over this machine's ceiling of ${ceiling}.`);
    }
    return Math.min(wish ?? configured ?? fallback, ceiling ?? Number.POSITIVE_INFINITY);
  };
  return {
    cpus: choose("cpus", asked?.cpus, config.limits.cpus, LIMITS.defaultCpus, ceilings.cpus),
    memoryBytes: choose("memoryBytes", asked?.memoryBytes, config.limits.memory, LIMITS.defaultMemoryBytes, ceilings.memory),
    diskBytes: choose("diskBytes", asked?.diskBytes, config.limits.disk, LIMITS.defaultDiskBytes, ceilings.disk),
    processes: choose("processes", asked?.processes, config.limits.processes, LIMITS.defaultProcesses, ceilings.processes),
  };
}

/** What a running sandbox gets without a person, within the machine's ceiling; what it has already stays. */
export function grantedWithoutAsking(
  row: Pick<SandboxRow, "limits" | "givenLimits">,
  config: Pick<ProjectConfig, "limits" | "policy">,
  { ceilings }: Pick<UserConfig, "ceilings">,
): Ceiling {
  const { cpus, memoryBytes } = runTimeCeiling(config, givenTo(row));
  return {
    cpus: Math.max(row.limits.cpus, Math.min(cpus, ceilings.cpus ?? cpus)),
    memoryBytes: Math.max(row.limits.memoryBytes, Math.min(memoryBytes, ceilings.memory ?? memoryBytes)),
  };
}
