/** Where this machine keeps its control groups, as its mount table says. */
import { readFileSync } from "node:fs";

export type Controller = "cpu" | "cpuacct" | "memory" | "pids" | "freezer";

/** Where each controller's groups live. In v2 all are the same folder. */
export interface Hierarchies {
  readonly version: 1 | 2;
  readonly mounts: ReadonlyMap<Controller, string>;
  /** Of v1. Nothing is limited by it, but a JVM believes no other group where it does not find this one. */
  readonly cpuset?: string;
}

export const MOUNTINFO = "/proc/self/mountinfo";
const NEEDED: readonly Controller[] = ["cpu", "memory", "pids", "freezer"];

/** What a machine mounts: the old kind, the new one, both, or none. */
export type CgroupLayout = "v1" | "v2" | "hybrid" | "none";

export function layoutOf(mountinfo = readFileSync(MOUNTINFO, "utf8")): CgroupLayout {
  const { v1, unified } = readHierarchies(mountinfo);
  if (v1.size > 0) return unified === undefined ? "v1" : "hybrid";
  return unified === undefined ? "none" : "v2";
}

function readHierarchies(mountinfo: string): { v1: Map<Controller, string>; unified: string | undefined; cpuset: string | undefined } {
  const v1 = new Map<Controller, string>();
  let unified: string | undefined;
  let cpuset: string | undefined;
  for (const line of mountinfo.split("\n")) {
    const [before, after] = line.split(" - ");
    const target = before?.split(" ")[4];
    const [type, , options] = (after ?? "").split(" ");
    if (target === undefined) continue;
    if (type === "cgroup2") unified ??= target;
    if (type !== "cgroup") continue;
    for (const option of (options ?? "").split(",")) {
      if (option === "cpu" || option === "cpuacct" || option === "memory" || option === "pids" || option === "freezer")
        v1.set(option, target);
      if (option === "cpuset") cpuset = target;
    }
  }
  return { v1, unified, cpuset };
}

/** Where limits can be held, from the mount table: the old kind if it has every controller, else the new one. */
export function findHierarchies(mountinfo: string): Hierarchies | undefined {
  const { v1, unified, cpuset } = readHierarchies(mountinfo);
  if (NEEDED.every((controller) => v1.has(controller))) return { version: 1, mounts: v1, ...(cpuset === undefined ? {} : { cpuset }) };
  if (unified === undefined) return undefined;
  const found = unified;
  return { version: 2, mounts: new Map(([...NEEDED, "cpuacct"] as Controller[]).map((controller) => [controller, found])) };
}
