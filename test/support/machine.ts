/** What a server has on the machine, for tests that nothing is left or lost. */
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { findHierarchies } from "../../src/base/host/cgroup-hierarchies.ts";
import { readMounts } from "../../src/base/host/mounts.ts";
import type { TestServer } from "./server.ts";

const list = (folder: string): string[] => (existsSync(folder) ? readdirSync(folder) : []);

/** Folders of cgroups named after sandboxes of this server, in all hierarchies. */
export function groupsOf(ids: ReadonlySet<string>, prefix = "vivarium-"): string[] {
  const hierarchies = findHierarchies(readFileSync("/proc/self/mountinfo", "utf8"));
  return [...new Set(hierarchies?.mounts.values() ?? [])].flatMap((mount) =>
    list(mount)
      .filter((name) => name.startsWith(prefix))
      .flatMap((name) =>
        list(join(mount, name))
          .filter((group) => ids.has(group))
          .map((group) => join(mount, name, group)),
      ),
  );
}

/** Process 1 of every sandbox of this server, as the machine sees them. */
export function processesInside(server: TestServer): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        const isFirst = /^NSpid:.*\s1$/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
        return isFirst && readFileSync(`/proc/${pid}/mountinfo`, "utf8").includes(server.project);
      } catch {
        // It ended meanwhile.
        return false;
      }
    })
    .map(Number);
}

/** Everything of this server that belongs to a sandbox, by the sandbox's id. */
export function traces(server: TestServer): { volumes: string[]; runs: string[]; logs: string[]; mounts: string[] } {
  const sandboxes = (names: string[]): string[] => names.filter((name) => name.includes("sbx")).toSorted();
  const pools = [join(server.paths.home, "pool/volumes"), join(server.paths.home, "volumes/volumes")];
  return {
    volumes: sandboxes(pools.flatMap(list)),
    runs: sandboxes(list(join(server.paths.home, "run"))),
    logs: sandboxes(list(join(server.paths.home, "logs"))),
    mounts: readMounts()
      .filter((mount) => mount.target.startsWith(server.place))
      .map((mount) => mount.target)
      .toSorted(),
  };
}

/** Itself and its children, of which the cell host is one. */
function familyOf(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ");
  return [pid, ...children.filter(Boolean).map(Number)];
}

/** What the open descriptors of the server and its cell host lead to. */
function descriptorsOf(server: TestServer): string[] {
  return familyOf(server.pid).flatMap((pid) =>
    list(`/proc/${pid}/fd`).flatMap((fd) => {
      try {
        return [readlinkSync(`/proc/${pid}/fd/${fd}`)];
      } catch {
        // Closed while we looked.
        return [];
      }
    }),
  );
}

/** Groups of sandboxes beside the one that the cell host lives in. */
function groupsBeside(server: TestServer): string[] {
  const hierarchies = findHierarchies(readFileSync("/proc/self/mountinfo", "utf8"));
  const own = familyOf(server.pid).map((pid) => readFileSync(`/proc/${pid}/cgroup`, "utf8"));
  const prefix = /\/(vivarium-[^/\n]+)\/cells$/m.exec(own.join("\n"))?.[1] ?? "none";
  return [...new Set(hierarchies?.mounts.values() ?? [])]
    .flatMap((mount) => list(join(mount, prefix)))
    .filter((name) => name.startsWith("sbx"));
}

/** How much of each kind a server holds on the machine, for comparing before with after. */
export function everythingOf(server: TestServer) {
  const { mounts } = traces(server);
  const descriptors = descriptorsOf(server);
  const pool = join(server.paths.home, "pool");
  const files = (folder: string): string[] => (existsSync(folder) ? readdirSync(folder, { recursive: true, encoding: "utf8" }) : []);
  const backing = (block: string): string => {
    const file = `/sys/block/${block}/loop/backing_file`;
    return existsSync(file) ? readFileSync(file, "utf8") : "";
  };
  return {
    mounts: mounts.length,
    groups: groupsBeside(server).length,
    insides: processesInside(server).length,
    loops: list("/sys/block").filter((block) => backing(block).startsWith(server.place)).length,
    // Snapshots, bases and what waits to be removed lie beside the volumes.
    volumes: list(pool).flatMap((shelf) => list(join(pool, shelf))).length,
    descriptors: descriptors.length,
    namespaces: descriptors.filter((link) => /^(mnt|net|user|pid|ipc|uts|cgroup):/.test(link)).length,
    files: ["run", "logs", "tmp"].flatMap((folder) => files(join(server.paths.home, folder))).length,
  };
}
