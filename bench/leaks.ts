/** What is left on the machine when sandboxes are gone. Only what belongs to the server under test is counted. */
import { readdirSync, readFileSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { readMounts } from "../src/base/host/mounts.ts";
import { round, series } from "./measure.ts";
import { allProcesses, familyOf, ifThere, linkOf } from "./processes.ts";
import type { Group, Measured } from "./rows.ts";
import { BenchServer } from "./server.ts";

const TIMES = 500;
const QUICK_TIMES = 50;
const AT_ONCE = 2;
/** Volumes and groups are given back in the background; what is still there after this is a leak. */
const SETTLE_MS = 60_000;
const LOOK_EVERY_MS = 200;

type Count = Readonly<
  Record<"processes" | "mounts" | "cgroups" | "loop_devices" | "network_namespaces" | "descriptors" | "files" | "pruned", number>
>;

export const leaksGroup: Group = {
  keys: ["leaks"],
  async measure({ quick, progress }) {
    return BenchServer.with(async (server) => {
      const times = quick ? QUICK_TIMES : TIMES;
      progress(`leaks: ${times} times create and destroy`);
      const group = await groupOf(server);
      await createAndDestroy(server, AT_ONCE * 4);
      // Ends the spare that the server has made ahead, and tells of what it found left over.
      await server.call("prune", {});
      const before = await settled(server, group, undefined);
      const latencies = await createAndDestroy(server, times);
      const { leftovers } = await server.call("prune", {});
      const after = await settled(server, group, before);
      return { leaks: report(before, { ...after, pruned: leftovers.length }, latencies, times) };
    });
  },
};

function report(before: Count, after: Count, latencies: readonly number[], times: number): Measured {
  const more: Record<string, number> = { times };
  let left = 0;
  for (const [name, has] of Object.entries(after)) {
    const had = before[name as keyof Count];
    more[`${name}_before`] = had;
    more[`${name}_after`] = has;
    left += Math.max(0, has - had);
  }
  return { figure: round(left), raw: { create: series(latencies) }, more };
}

async function createAndDestroy(server: BenchServer, times: number): Promise<number[]> {
  const latencies: number[] = [];
  let begun = 0;
  const worker = async (): Promise<void> => {
    while (begun++ < times) latencies.push(await server.createAndRemove());
  };
  const results = await Promise.allSettled(Array.from({ length: AT_ONCE }, worker));
  for (const result of results) if (result.status === "rejected") throw result.reason;
  return latencies;
}

/** The name of the server's control groups: a path component that its sandboxes' process 1 is in. */
async function groupOf(server: BenchServer): Promise<string | undefined> {
  const { id } = await server.create();
  const { processId } = await server.call("inspectSandbox", { sandbox: id });
  const text = processId === null ? "" : readFileSync(`/proc/${processId}/cgroup`, "utf8");
  await server.remove(id);
  return /\/(vivarium-[a-z0-9]+)(\/|$)/m.exec(text)?.[1];
}

/** Looks until nothing is left of what came since `goal`, or, without a goal, until nothing moves any more. */
async function settled(server: BenchServer, group: string | undefined, goal: Count | undefined): Promise<Count> {
  const deadline = performance.now() + SETTLE_MS;
  let last = count(server, group);
  for (;;) {
    await delay(LOOK_EVERY_MS);
    const now = count(server, group);
    const compared = goal ?? last;
    const quiet = Object.entries(now).every(([name, value]) => value <= compared[name as keyof Count]);
    if (quiet || performance.now() > deadline) return now;
    last = now;
  }
}

function count(server: BenchServer, group: string | undefined): Count {
  const family = familyOf(server.pid);
  const grouped = group === undefined ? [] : allProcesses().filter((pid) => inGroup(pid, group));
  const processes = [...new Set([...family, ...grouped])];
  return {
    processes: processes.length,
    mounts: mountsOf(server.place, family),
    cgroups: group === undefined ? 0 : groupFolders(group),
    loop_devices: loopDevices(server.place),
    network_namespaces: networkNamespaces(processes),
    descriptors: family.reduce((sum, pid) => sum + descriptorsOf(pid).length, 0),
    files: filesBelow(server.paths.home),
    pruned: 0,
  };
}

function inGroup(pid: number, group: string): boolean {
  return (ifThere(() => readFileSync(`/proc/${pid}/cgroup`, "utf8")) ?? "").includes(`/${group}`);
}

/** Mounts that name the state folder, in every mount namespace the server and its helper live in. */
function mountsOf(place: string, family: readonly number[]): number {
  const seen = new Map<string, number>();
  for (const pid of [process.pid, ...family]) {
    const namespace = linkOf(pid, "ns/mnt");
    if (namespace === undefined || seen.has(namespace)) continue;
    const table = ifThere(() => readFileSync(`/proc/${pid}/mountinfo`, "utf8")) ?? "";
    seen.set(namespace, table.split("\n").filter((line) => line.includes(place)).length);
  }
  return [...seen.values()].reduce((sum, mounts) => sum + mounts, 0);
}

function groupFolders(group: string): number {
  const tops = readMounts().filter(({ type }) => type === "cgroup" || type === "cgroup2");
  return tops.reduce((sum, { target }) => sum + foldersBelow(join(target, group)), 0);
}

function foldersBelow(folder: string): number {
  const entries = ifThere(() => readdirSync(folder, { withFileTypes: true }));
  if (entries === undefined) return 0;
  return entries.filter((entry) => entry.isDirectory()).reduce((sum, entry) => sum + foldersBelow(join(folder, entry.name)), 1);
}

function loopDevices(place: string): number {
  const real = realpathSync(place);
  return readdirSync("/sys/block").filter((name) =>
    ifThere(() => readFileSync(`/sys/block/${name}/loop/backing_file`, "utf8"))?.startsWith(real),
  ).length;
}

/** Held by a process that lives in them, or by a descriptor. */
function networkNamespaces(processes: readonly number[]): number {
  const found = processes.flatMap((pid) => [linkOf(pid, "ns/net"), ...descriptorsOf(pid).filter((target) => target.startsWith("net:"))]);
  return new Set(found.filter((namespace) => namespace !== undefined)).size;
}

function descriptorsOf(pid: number): string[] {
  const names = ifThere(() => readdirSync(`/proc/${pid}/fd`)) ?? [];
  return names.flatMap((name) => linkOf(pid, `fd/${name}`) ?? []);
}

/** Files and folders of the state folder, its volumes included. */
function filesBelow(folder: string): number {
  const entries = ifThere(() => readdirSync(folder, { withFileTypes: true })) ?? [];
  return entries.reduce((sum, entry) => sum + 1 + (entry.isDirectory() ? filesBelow(join(folder, entry.name)) : 0), 0);
}
