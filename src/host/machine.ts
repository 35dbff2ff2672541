/** What this machine lets this user do, tried rather than guessed. */
import { existsSync, readFileSync } from "node:fs";
import { run, TOOL_PATH } from "./run.ts";

export interface Machine {
  readonly platform: NodeJS.Platform;
  readonly uid: number;
  readonly gid: number;
  /** How the native driver can run here. */
  readonly mode: "root" | "user" | "none";
  /** Results of `cell probe`: "ok" or an error number. */
  readonly probe: ReadonlyMap<string, string>;
  /** Ubuntu's AppArmor limit on user namespaces is on. */
  readonly apparmorLimit: boolean;
  readonly btrfsTools: boolean;
  readonly btrfsKernel: boolean;
}

function readOr(path: string, fallback: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    // Absent on this kernel.
    return fallback;
  }
}

export async function examine(cell: string | undefined): Promise<Machine> {
  // Not from the account: an id without one, as containers have, is a user too.
  const uid = process.getuid?.() ?? 0;
  const gid = process.getgid?.() ?? 0;
  const probe = new Map<string, string>();
  if (cell !== undefined && process.platform === "linux") {
    const { stdout } = await run(cell, ["probe"], { timeoutMs: 10_000 });
    for (const line of stdout.toString().split("\n")) {
      const [name, result] = line.split("=");
      if (name && result) probe.set(name, result);
    }
  }
  const ok = (name: string): boolean => probe.get(name) === "ok";
  const mode = ok("overlay") && ok("detached-mounts") && ok("user-namespace") ? "root" : ok("user-overlay") ? "user" : "none";
  return {
    platform: process.platform,
    uid,
    gid,
    mode,
    probe,
    apparmorLimit: readOr("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "0").trim() === "1",
    btrfsTools: TOOL_PATH.split(":").some((folder) => existsSync(`${folder}/mkfs.btrfs`)),
    btrfsKernel: readOr("/proc/filesystems", "").includes("\tbtrfs") || existsSync("/sys/module/btrfs"),
  };
}
