/**
 * Limits held by the kernel: cgroup v2, v1 and hybrid hierarchies behind one face.
 *
 * Each sandbox has one group for its commands; process 1 lives in a group shared by all cells, so that neither
 * the memory limit nor the freezer hits it. A group's name is never used twice: a leaked group would keep its limits.
 */
import { accessSync, constants, existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { findHierarchies, MOUNTINFO, type Controller, type Hierarchies } from "./cgroup-hierarchies.ts";
import { VivError } from "../schema/errors.ts";
import type { Limits } from "../schema/sandbox.ts";

export interface GroupUse {
  readonly memoryBytes: number | null;
  readonly peakMemoryBytes: number | null;
  readonly cpuMs: number | null;
  readonly processes: number | null;
  readonly outOfMemory: number;
  readonly tooManyProcesses: number;
}

export interface GroupValue {
  readonly path: string;
  readonly value: string;
  /** Whether kernels without this file do without. */
  readonly optional: boolean;
}

export interface NewGroups {
  readonly folders: readonly string[];
  readonly values: readonly GroupValue[];
}

const CPU_PERIOD_US = 100_000;
/** A process that waits for a disk or a network file system freezes when that answers. */
const FREEZE_MS = 15_000;
/** After so many attempts without success, all processes are thawed for a moment. */
const THAW_EVERY = 10;

export class Cgroups {
  readonly version: 1 | 2;
  readonly #mounts: ReadonlyMap<Controller, string>;
  readonly #prefix: string;
  /** Where the group of all cells is in the hierarchy of processor sets, if there is one. */
  #cpuset: string | undefined;

  private constructor(hierarchies: Hierarchies, prefix: string) {
    this.version = hierarchies.version;
    this.#cpuset = hierarchies.cpuset;
    this.#mounts = hierarchies.mounts;
    this.#prefix = prefix;
  }

  /** Groups under `prefix`, or undefined where this process may not make any. */
  static open(prefix: string, mountinfo = readFileSync(MOUNTINFO, "utf8")): Cgroups | undefined {
    const hierarchies = findHierarchies(mountinfo);
    if (hierarchies === undefined) return undefined;
    const place = hierarchies.version === 1 ? prefix : delegatedPrefix(hierarchies, prefix);
    if (place === undefined) return undefined;
    const groups = new Cgroups(hierarchies, place);
    try {
      groups.#prepare();
      return groups;
    } catch {
      // The server may not make groups: read-only cgroup mounts, or an ordinary user without delegation.
      return undefined;
    }
  }

  #folders(): string[] {
    return [...new Set(this.#mounts.values())];
  }

  #group(controller: Controller, name: string): string | undefined {
    const mount = this.#mounts.get(controller);
    return mount === undefined ? undefined : join(mount, this.#prefix, name);
  }

  #prepare(): void {
    for (const mount of this.#folders()) {
      if (this.version === 2) enableControllers(mount, this.#prefix);
      mkdirSync(join(mount, this.#prefix, "cells"), { recursive: true });
      accessSync(join(mount, this.#prefix, "cells", "cgroup.procs"), constants.W_OK);
    }
    if (this.#cpuset !== undefined && !makeProcessorSets(this.#cpuset, [this.#prefix, "cells"])) this.#cpuset = undefined;
  }

  /** The hierarchies that programs inside may look into: those that runtimes size themselves by. */
  #shown(): string[] {
    const controllers = this.version === 2 ? (["memory"] as const) : (["cpu", "cpuacct", "memory"] as const);
    return [...new Set(controllers.flatMap((controller) => this.#mounts.get(controller) ?? []))];
  }

  /** Where a launcher that went into the groups of v1 goes back to. */
  cellFolders(): string[] {
    return this.version === 2 ? [] : this.#shown().map((mount) => join(mount, this.#prefix, "cells"));
  }

  #ownFolders(): string[] {
    return this.#cpuset === undefined ? this.#folders() : [...this.#folders(), this.#cpuset];
  }

  /**
   * Moves the cell host to where process 1 of every sandbox is to live; its children are born there. A process that
   * moves makes the kernel wait for a grace period, so no process moves while a request waits.
   */
  moveCells(pid: number): void {
    for (const mount of this.#ownFolders()) writeFileSync(join(mount, this.#prefix, "cells", "cgroup.procs"), String(pid));
  }

  /** The groups that programs inside may look at, with the name of each below /sys/fs/cgroup. */
  views(name: string): (readonly [name: string, folder: string])[] {
    const called = (mount: string): string => (this.version === 2 ? "" : basename(mount));
    const views = this.#shown().map((mount) => [called(mount), join(mount, this.#prefix, name)] as const);
    return this.#cpuset === undefined ? views : [...views, ["cpuset", join(this.#cpuset, this.#prefix, "cells")]];
  }

  /** The group that counts the memory of a sandbox, and lists its threads as every other does. */
  memoryFolder(name: string): string {
    return this.#group("memory", name) ?? "";
  }

  workFolders(name: string): string[] {
    return this.#folders().map((mount) => join(mount, this.#prefix, name));
  }

  /** What makes the groups of a sandbox: the folders, then the values of their files in this order. */
  newGroups(name: string, limits: Limits): NewGroups {
    const values = this.#values(limits, false).flatMap(({ controller, file, value, optional }): GroupValue[] => {
      const folder = this.#group(controller, name);
      return folder === undefined ? [] : [{ path: join(folder, file), value, optional }];
    });
    return { folders: this.workFolders(name), values };
  }

  limit(name: string, limits: Limits): void {
    const rises = this.version === 1 && Number(this.#read("memory", name, "memory.limit_in_bytes") ?? 0) < limits.memoryBytes;
    for (const { controller, file, value, optional } of this.#values(limits, rises)) this.#write(controller, name, file, value, optional);
  }

  /** `rises` tells that the memory limit of before is lower. */
  #values(limits: Limits, rises: boolean): { controller: Controller; file: string; value: string; optional: boolean }[] {
    const set = (controller: Controller, file: string, value: string, optional = false) => ({ controller, file, value, optional });
    const quota = Math.max(1000, Math.round(limits.cpus * CPU_PERIOD_US));
    const memory = String(limits.memoryBytes);
    const processes = set("pids", "pids.max", String(limits.processes));
    if (this.version === 2) {
      const swap = set("memory", "memory.swap.max", "0", true);
      return [set("cpu", "cpu.max", `${quota} ${CPU_PERIOD_US}`), set("memory", "memory.max", memory), swap, processes];
    }
    // The kernel keeps the limit with swap at least as high as the one without: whichever is in the way goes first.
    const both = [set("memory", "memory.limit_in_bytes", memory), set("memory", "memory.memsw.limit_in_bytes", memory, true)];
    return [set("cpu", "cpu.cfs_quota_us", String(quota)), ...(rises ? both.toReversed() : both), processes];
  }

  #write(controller: Controller, name: string, file: string, value: string, optional = false): void {
    const folder = this.#group(controller, name);
    if (folder === undefined) return;
    const path = join(folder, file);
    if (optional && !existsSync(path)) return;
    writeFileSync(path, value);
  }

  #read(controller: Controller, name: string, file: string): string | undefined {
    const folder = this.#group(controller, name);
    if (folder === undefined) return undefined;
    try {
      return readFileSync(join(folder, file), "utf8").trim();
    } catch {
      // The group is gone or this kernel has no such file: both mean nothing to report.
      return undefined;
    }
  }

  async freeze(name: string): Promise<void> {
    await this.#setFrozen(name, true);
  }

  async thaw(name: string): Promise<void> {
    await this.#setFrozen(name, false);
  }

  async #setFrozen(name: string, frozen: boolean): Promise<void> {
    const deadline = performance.now() + FREEZE_MS;
    this.#askFrozen(name, frozen);
    for (let attempt = 1; !this.#isFrozen(name, frozen); attempt += 1) {
      await wait(Math.min(attempt - 1, 20));
      const late = performance.now() > deadline;
      // As where another program froze a group above it.
      if (late && !frozen) throw new VivError("timeout", `The processes of the sandbox did not go on within ${FREEZE_MS / 1000} seconds.`);
      if (!frozen) continue;
      if (late) {
        await this.thaw(name);
        throw new VivError("timeout", `The processes of the sandbox did not stand still within ${FREEZE_MS / 1000} seconds.`);
      }
      // In v1 a process that was on its way into vfork misses the request and waits for a child that stands still already.
      if (attempt % THAW_EVERY === 0) this.#askFrozen(name, false);
      this.#askFrozen(name, true);
    }
  }

  #askFrozen(name: string, frozen: boolean): void {
    if (this.version === 2) this.#write("freezer", name, "cgroup.freeze", frozen ? "1" : "0");
    else this.#write("freezer", name, "freezer.state", frozen ? "FROZEN" : "THAWED");
  }

  #isFrozen(name: string, frozen: boolean): boolean {
    if (this.version === 1) {
      const state = this.#read("freezer", name, "freezer.state");
      return state === undefined || state === (frozen ? "FROZEN" : "THAWED");
    }
    const events = this.#read("freezer", name, "cgroup.events");
    return events === undefined || events.includes(`frozen ${frozen ? 1 : 0}`);
  }

  use(name: string): GroupUse {
    const memory = (v2: string, v1: string): string | undefined => this.#read("memory", name, this.version === 2 ? v2 : v1);
    return {
      memoryBytes: number(memory("memory.current", "memory.usage_in_bytes")),
      peakMemoryBytes: number(memory("memory.peak", "memory.max_usage_in_bytes")),
      cpuMs: this.cpuMs(name),
      processes: number(this.#read("pids", name, "pids.current")),
      outOfMemory: counter(memory("memory.events", "memory.oom_control"), "oom_kill"),
      tooManyProcesses: counter(this.#read("pids", name, "pids.events"), "max"),
    };
  }

  /** Processor time alone, which is looked at every few seconds for every sandbox. */
  cpuMs(name: string): number | null {
    if (this.version === 2) return counter(this.#read("cpu", name, "cpu.stat"), "usage_usec") / 1000;
    const nanos = number(this.#read("cpuacct", name, "cpuacct.usage"));
    return nanos === null ? null : nanos / 1e6;
  }

  /** What its processes wrote to files and the disk does not have yet; undefined where the kernel does not count it. */
  unwrittenBytes(name: string): number | undefined {
    const text = this.#read("memory", name, "memory.stat");
    const found = new RegExp(`^${this.version === 2 ? "file_dirty" : "total_dirty"} (\\d+)$`, "m").exec(text ?? "")?.[1];
    return found === undefined ? undefined : Number(found);
  }

  /** How many processes a group holds; undefined where the kernel does not count them. */
  count(name: string): number | undefined {
    const text = this.#read("pids", name, "pids.current");
    return text === undefined ? undefined : Number(text);
  }

  /** Removes a group whose processes have ended. */
  async remove(name: string): Promise<void> {
    for (const folder of this.workFolders(name)) await removeGroup(folder, 200);
  }

  /** Leaves nothing behind once the cell host has ended; `idle` tells that no sandbox has a process in a group. */
  async close(idle: boolean): Promise<void> {
    if (!idle) return;
    for (const mount of this.#ownFolders()) {
      for (const folder of [join(mount, this.#prefix, "cells"), join(mount, this.#prefix)]) {
        // Sandboxes that this server could not take over still have their groups: they stay for the next one.
        await removeGroup(folder, 20).catch((error: unknown) => {
          if (!(error instanceof VivError) || error.code !== "busy") throw error;
        });
      }
    }
  }

  /** Names of the groups that exist, in any hierarchy. */
  names(): string[] {
    const names = new Set<string>();
    for (const mount of this.#folders()) {
      for (const entry of readdirSync(join(mount, this.#prefix), { withFileTypes: true })) {
        if (entry.isDirectory() && entry.name !== "cells" && entry.name !== "server") names.add(entry.name);
      }
    }
    return [...names];
  }

  /** Host-side ids of the processes in a group. */
  processes(name: string): number[] {
    return (this.#read("pids", name, "cgroup.procs") ?? "").split("\n").filter(Boolean).map(Number);
  }
}

function number(text: string | undefined): number | null {
  return text === undefined || text === "" ? null : Number(text);
}

function counter(text: string | undefined, key: string): number {
  return Number(new RegExp(`^${key} (\\d+)`, "m").exec(text ?? "")?.[1] ?? 0);
}

/** A new set of processors is empty; each takes what the one above it has. False where this process may not make any. */
function makeProcessorSets(mount: string, names: readonly string[]): boolean {
  try {
    let above = mount;
    for (const name of names) {
      const folder = join(above, name);
      mkdirSync(folder, { recursive: true });
      for (const file of ["cpuset.cpus", "cpuset.mems"]) writeFileSync(join(folder, file), readFileSync(join(above, file)));
      above = folder;
    }
    return true;
  } catch {
    // Read-only, or mounted without the prefix of its files: what a JVM inside sees is then the machine's.
    return false;
  }
}

/** The kernel may take a moment to let go of a group's last process. */
async function removeGroup(folder: string, attempts: number): Promise<void> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return rmdirSync(folder);
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code;
      if (code === "ENOENT") return;
      if (code !== "EBUSY") throw error;
      if (attempt >= attempts) throw held(folder, error);
      await wait(Math.min(attempt, 25));
    }
  }
}

function held(folder: string, cause: unknown): VivError {
  const by = readFileSync(join(folder, "cgroup.procs"), "utf8").trim().split("\n").filter(Boolean).slice(0, 5).join(", ");
  return new VivError("busy", `The group ${folder} is still in use${by === "" ? "" : ` by process ${by}`}.`, {
    cause,
    remedy: "Move or end the process that is in it; the removal then finishes by itself.",
  });
}

/** In v2 an ordinary user may only work below a group that was delegated to it; root works at the top. */
function delegatedPrefix(hierarchies: Hierarchies, prefix: string): string | undefined {
  if (process.getuid?.() === 0) return prefix;
  const own = /^0::(.*)$/m.exec(readFileSync("/proc/self/cgroup", "utf8"))?.[1];
  const mount = hierarchies.mounts.get("memory");
  if (own === undefined || mount === undefined) return undefined;
  try {
    accessSync(join(mount, own, "cgroup.subtree_control"), constants.W_OK);
    // A group with processes of its own can't hand controllers down: the server moves into a leaf.
    mkdirSync(join(mount, own, "server"), { recursive: true });
    writeFileSync(join(mount, own, "server", "cgroup.procs"), "0");
    return join(own, prefix);
  } catch {
    // Not delegated: limits are watched instead, and `viv doctor` says so.
    return undefined;
  }
}

function enableControllers(mount: string, prefix: string): void {
  let folder = mount;
  for (const part of ["", ...prefix.split("/").filter(Boolean)]) {
    folder = join(folder, part);
    mkdirSync(folder, { recursive: true });
    const available = readFileSync(join(folder, "cgroup.controllers"), "utf8").trim().split(" ");
    const wanted = ["cpu", "memory", "pids"];
    if (!wanted.every((controller) => available.includes(controller))) throw new Error(`cgroup controllers missing in ${folder}`);
    const enabled = readFileSync(join(folder, "cgroup.subtree_control"), "utf8").trim().split(" ");
    const missing = wanted.filter((controller) => !enabled.includes(controller));
    if (missing.length > 0) writeFileSync(join(folder, "cgroup.subtree_control"), missing.map((controller) => `+${controller}`).join(" "));
  }
}

/** Groups of servers with different state folders must not meet; `id` is the folder's. */
export function groupName(id: string): string {
  return `vivarium-${id}`;
}
