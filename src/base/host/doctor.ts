/** Findings for people: what works on this machine, what is lost, and what would help. */
import type { CgroupLayout } from "./cgroup-hierarchies.ts";
import type { Machine } from "./machine.ts";
import type { Doctor, Finding } from "../schema/server.ts";

export interface DoctorView {
  readonly machine: Machine;
  /** What the server runs with; undefined before there is a server. */
  readonly storage: "btrfs" | "plain" | "folder" | undefined;
  readonly limits: "hard" | "watched" | undefined;
  readonly cell: string | undefined;
  readonly groups: 1 | 2 | undefined;
  /** Set when the database was brought back from a backup and `viv prune` was not run since. */
  readonly restored?: { readonly takenAt: string; readonly damaged: string } | undefined;
  /** Which cgroups the machine shows. */
  readonly layout?: CgroupLayout;
}

export const APPARMOR_PROFILE = `abi <abi/4.0>,
include <tunables/global>
profile vivarium-cell CELL flags=(unconfined) {
  userns,
}`;

export function diagnose(view: DoctorView): Doctor {
  const { machine } = view;
  return {
    wall: machine.mode === "none" ? "folder" : "native",
    mode: machine.mode,
    findings: [platform(view), helper(view), walls(view), users(view), storage(view), limits(view), database(view)].filter(
      (finding) => finding !== undefined,
    ),
  };
}

const finding = (check: string, verdict: Finding["verdict"], detail: string, remedy: string | null = null): Finding => ({
  check,
  verdict,
  detail,
  remedy,
});

function platform({ machine }: DoctorView): Finding {
  if (machine.platform === "linux") return finding("platform", "good", "Linux.");
  return finding(
    "platform",
    "missing",
    `${machine.platform} has no namespaces to build walls from.`,
    machine.platform === "win32" ? "Use WSL2." : "Use a Linux machine or virtual machine; `--unwalled` works on a copy of the folder.",
  );
}

export const CELL_REMEDY = "Build it again with `npm run setup`, or let VIV_CELL name the one that belongs to this version.";

function helper({ cell, machine }: DoctorView): Finding {
  if (machine.cellTrouble !== undefined) return finding("native helper", "missing", machine.cellTrouble, CELL_REMEDY);
  if (cell !== undefined) return finding("native helper", "good", `The cell is at ${cell}.`);
  return finding(
    "native helper",
    "missing",
    "The cell is not built.",
    "Install a C compiler (Debian: gcc, libc6-dev, make) and run `npm run setup`.",
  );
}

function walls({ machine, cell }: DoctorView): Finding {
  if (machine.mode === "root") return finding("walls", "good", "Namespaces, id-mapped mounts and an overlay of the whole machine work.");
  if (machine.mode === "user") return finding("walls", "good", "User namespaces and overlays work for an ordinary user.");
  if (machine.apparmorLimit) {
    return finding(
      "walls",
      "missing",
      "AppArmor forbids user namespaces to ordinary programs.",
      `Run viv as root, or install this profile as /etc/apparmor.d/vivarium-cell and reload it:\n${APPARMOR_PROFILE.replace("CELL", cell ?? "/path/to/cell")}`,
    );
  }
  if (machine.stateOnOverlay && machine.probe.get("user-overlay") === "ok") {
    return finding(
      "walls",
      "missing",
      "The state folder lies on overlayfs, as in a container: it holds no changes of another overlay.",
      "Let VIV_HOME name a folder on a disk, a volume of the container or a tmpfs, or run viv as root with btrfs-progs installed.",
    );
  }
  const why = [...machine.probe].find(([, result]) => result !== "ok");
  const detail = why === undefined ? "Nothing could be tried." : `${why[0]} fails with error ${why[1]}.`;
  return finding(
    "walls",
    "missing",
    detail,
    "Run viv as root, or allow user namespaces (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone); in a container, start it with --privileged.",
  );
}

function users({ machine }: DoctorView): Finding | undefined {
  if (machine.mode !== "user") return undefined;
  return finding(
    "users",
    "reduced",
    "Only your own user exists inside: apt, chown and editing files of root don't work there.",
    machine.uid === 0
      ? "Run viv outside of the container: its / takes no id-mapped mounts."
      : "Run viv as root for a clone with all users.",
  );
}

function storage({ machine, storage: kind }: DoctorView): Finding | undefined {
  if (kind === undefined) return undefined;
  if (kind === "btrfs")
    return finding(
      "storage",
      "good",
      "btrfs: snapshots, rollbacks and forks cost the same for any amount of data, and disk quotas are hard.",
    );
  const cost = "Snapshots copy what changed, and disk quotas are watched every few seconds instead of being held by the kernel.";
  if (machine.uid !== 0) return finding("storage", "reduced", `Plain folders. ${cost}`, "Run viv as root to get btrfs volumes.");
  if (!machine.btrfsTools)
    return finding("storage", "reduced", `Plain folders: mkfs.btrfs is missing. ${cost}`, "Install btrfs-progs, then `viv down`.");
  if (!machine.btrfsKernel) return finding("storage", "reduced", `Plain folders: this kernel has no btrfs. ${cost}`);
  return finding("storage", "reduced", `Plain folders. ${cost}`, "Set storage to auto in the user config.");
}

function limits({ limits: held, groups, layout }: DoctorView): Finding | undefined {
  if (held === undefined) return undefined;
  if (held === "hard") return finding("limits", "good", `CPU, memory and process limits are held by cgroup v${groups ?? 2}.`);
  const why = layout === "none" ? "This machine shows no cgroups" : "No cgroup of its own";
  const remedy =
    layout === "none"
      ? "Mount cgroup2 on /sys/fs/cgroup; in a container, start it with --privileged."
      : "Run viv as root, or in a systemd user scope: systemd-run --user --scope -p Delegate=yes viv up";
  return finding(
    "limits",
    "reduced",
    `${why}: memory and process limits are watched instead of being held by the kernel, and a CPU limit that is asked for is refused.`,
    remedy,
  );
}

function database({ restored }: DoctorView): Finding | undefined {
  if (restored === undefined) return undefined;
  return finding(
    "database",
    "reduced",
    `It was damaged, and brought back as it was at ${restored.takenAt}. Sandboxes made after that have no record and are left as they are.`,
    `Take out of them what you need, then run \`viv prune\`, which removes them. The damaged files are kept as ${restored.damaged}.`,
  );
}
