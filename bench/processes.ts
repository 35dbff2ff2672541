/** Processes and their memory, as /proc shows them. What ends while it is looked at counts as gone. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { processesBelow } from "../src/base/host/processes.ts";

const GONE = new Set(["ENOENT", "ESRCH", "EACCES"]);

/** Undefined when the process has ended. */
export function ifThere<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch (error) {
    if (GONE.has((error as NodeJS.ErrnoException).code ?? "")) return undefined;
    throw error;
  }
}

export function allProcesses(): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

/** A process and all below it. */
export function familyOf(pid: number): number[] {
  return [pid, ...processesBelow(pid).map((found) => found.pid)];
}

/** The same without those that live in a sandbox. */
export function hostFamilyOf(pid: number): number[] {
  const outside = new Set(namesakesOf(pid));
  return familyOf(pid).filter((member) => outside.has(member));
}

export function linkOf(pid: number, name: string): string | undefined {
  return ifThere(() => readlinkSync(`/proc/${pid}/${name}`));
}

/** Processes that live in the same pid namespace. */
export function namesakesOf(pid: number): number[] {
  const namespace = linkOf(pid, "ns/pid");
  return allProcesses().filter((other) => linkOf(other, "ns/pid") === namespace);
}

function kibibytes(pid: number, file: string, field: string): number {
  const text = ifThere(() => readFileSync(`/proc/${pid}/${file}`, "utf8")) ?? "";
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(text)?.[1] ?? 0);
}

/** Memory of its own, and its share of what it has in common with others. */
export function proportionalMib(pid: number): number {
  return kibibytes(pid, "smaps_rollup", "Pss") / 1024;
}

export function residentMib(pid: number): number {
  return kibibytes(pid, "status", "VmRSS") / 1024;
}

/** How many descriptors it has open. */
export function descriptorsOf(pid: number): number {
  return (ifThere(() => readdirSync(`/proc/${pid}/fd`)) ?? []).length;
}

/** Milliseconds that processors have worked for all threads of a process. */
export function workedMs(pid: number): number {
  const threads = ifThere(() => readdirSync(`/proc/${pid}/task`)) ?? [];
  const times = threads.map((thread) => ifThere(() => readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8")) ?? "0");
  return times.reduce((sum, text) => sum + Number(text.split(" ")[0]) / 1e6, 0);
}
