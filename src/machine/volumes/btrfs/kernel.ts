/** What the kernel tells about a mounted btrfs, as files. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { mountOf, readMounts } from "../../../base/host/mounts.ts";

const SYSFS = "/sys/fs/btrfs";

/** The kernel's folder about the file system that a folder lies on. */
export function systemOf(folder: string): string | undefined {
  const device = mountOf(folder, readMounts())?.source;
  if (device === undefined || !existsSync(SYSFS)) return undefined;
  const name = readdirSync(SYSFS).find((system) => existsSync(join(SYSFS, system, "devices", basename(device))));
  return name === undefined ? undefined : join(SYSFS, name);
}

/** How often the devices failed, or gave back other data than was written. Survives mounts; undefined where the kernel does not tell. */
export function deviceErrors(system: string): number | undefined {
  const devices = join(system, "devinfo");
  try {
    const counts = readdirSync(devices).flatMap((device) =>
      [...readFileSync(join(devices, device, "error_stats"), "utf8").matchAll(/ (\d+)$/gm)].map(([, count]) => Number(count)),
    );
    return counts.reduce((sum, count) => sum + count, 0);
  } catch {
    // An older kernel, or the file system was unmounted meanwhile.
    return undefined;
  }
}
