/** What a server has on the machine, for tests that nothing is left or lost. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { findHierarchies } from "../../src/host/cgroups.ts";
import { readMounts } from "../../src/host/mounts.ts";
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
