/** What the helper is told of a launch before there is a disk for it: who the sandbox is, its places, groups and limits. */
import type { Cgroups } from "../../../base/host/cgroups.ts";
import { GATEWAY_PORT, GATEWAY_SOCKET } from "../../../base/schema/gateway.ts";
import { LIMITS } from "../../../base/schema/limits.ts";
import { PROXY_PORT, PROXY_SOCKET } from "../../../base/schema/network.ts";
import type { LaunchRequest } from "../drivers.ts";
import type { Field } from "./plan.ts";
import { visibleLimits } from "./visible-limits.ts";

interface Launcher {
  readonly mode: "root" | "user";
  readonly uid: number;
  readonly gid: number;
  readonly cgroups: Cgroups | undefined;
}

interface Places {
  readonly socket: string;
  readonly run: string;
  readonly logs: string;
}

export function launchFields(request: LaunchRequest, launcher: Launcher, places: Places): Field[] {
  return [
    ["sandbox", request.sandbox],
    ["mode", launcher.mode],
    ...idFields(request, launcher),
    ["socket", places.socket],
    ["logs", places.logs],
    ["run", places.run],
    // Where there is no network, there is no socket, and a program that dials the port is refused.
    ["forward", `${PROXY_PORT}\x1f${PROXY_SOCKET}`],
    ["forward", `${GATEWAY_PORT}\x1f${GATEWAY_SOCKET}`],
    ["direct", PROXY_SOCKET],
    ["privileges", request.sudo ? "keep" : "drop"],
    ...groupFields(request, launcher.cgroups),
    ...limitFields(request, launcher.cgroups !== undefined),
  ];
}

function idFields(request: LaunchRequest, { mode, uid, gid }: Launcher): Field[] {
  if (mode === "user") {
    return [
      ["map_uid", String(uid)],
      ["map_gid", String(gid)],
    ];
  }
  return [
    ["uid_base", String(LIMITS.uidRangeStart + request.range * LIMITS.uidRangeSize)],
    ["uid_count", String(LIMITS.uidRangeSize)],
    ...largeIdFields(request),
  ];
}

/** Each of these gets an id outside that belongs to no one, as the whole range does. */
function largeIdFields({ range, largeIds }: LaunchRequest): Field[] {
  const first = LIMITS.largeIdsStart + range * LIMITS.largeIds;
  const pairs = (key: string, ids: readonly number[]): Field[] => ids.map((id, index): Field => [key, `${id}\x1f${first + index}`]);
  return [...pairs("more_uid", largeIds.uids), ...pairs("more_gid", largeIds.gids)];
}

/** The launcher makes the groups, so that the server goes on meanwhile. */
function groupFields({ sandbox, limits }: LaunchRequest, cgroups: Cgroups | undefined): Field[] {
  if (cgroups === undefined) return [];
  const { folders, values } = cgroups.newGroups(sandbox, limits);
  return [
    ...folders.map((folder): Field => ["new_cgroup", folder]),
    ...values.map(({ path, value, optional }): Field => ["group_value", `${path}\x1f${value}\x1f${optional ? 1 : 0}`]),
    ...folders.map((folder): Field => ["work_cgroup", folder]),
    ["memory_cgroup", cgroups.memoryFolder(sandbox)],
    ...cgroups.cellFolders().map((folder): Field => ["init_cgroup", folder]),
    ...cgroups.views(sandbox).map(([name, folder]): Field => ["cgroup_view", `${name}\x1f${folder}`]),
  ];
}

/** What is told inside, and where no cgroup holds the limits, what the kernel offers per process. */
function limitFields({ limits, range }: LaunchRequest, held: boolean): Field[] {
  return [
    ["rlimit", "core\x1f0\x1f0"],
    ...(held ? [] : [["rlimit", `nproc\x1f${limits.processes}\x1f${limits.processes}`] as const]),
    ["range", String(range)],
    ...visibleLimits(limits, held),
  ];
}
