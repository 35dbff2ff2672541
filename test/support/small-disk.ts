import { execFileSync, spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { chmodSync, mkdirSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { eventually, TestServer } from "./server.ts";

/** A state folder on a small disk of its own, which a test can fill. */
export class SmallDisk {
  readonly server: TestServer;

  private constructor(server: TestServer) {
    this.server = server;
  }

  /** Room for so many files, too, if that is given. */
  static async make(config: unknown, mebibytes: number, files?: number): Promise<SmallDisk> {
    const before = ({ place, paths: { home } }: TestServer): void => {
      const image = join(place, "disk.img");
      execFileSync("truncate", ["-s", `${mebibytes}M`, image]);
      execFileSync("mkfs.ext4", ["-q", "-m", "0", ...(files === undefined ? [] : ["-N", String(files)]), image]);
      mkdirSync(home, { mode: 0o700 });
      execFileSync("mount", ["-o", "loop", image, home]);
      chmodSync(home, 0o700);
    };
    return new SmallDisk(await TestServer.start({ config, before }));
  }

  /** Leaves this much free. Blocks are reserved, not written. */
  fill(leaveMebibytes: number): void {
    const { home } = this.server.paths;
    const free = Number(execFileSync("df", ["--output=avail", "-B1", home]).toString().trim().split("\n")[1]);
    execFileSync("fallocate", ["-l", String(free - Math.max(leaveMebibytes, 16) * 1024 ** 2), join(home, "filler")]);
    if (leaveMebibytes === 0) execFileSync("sh", ["-c", `cat /dev/zero > ${home}/filler.rest 2>/dev/null || true`]);
  }

  /** Leaves room for so many files. */
  fillFiles(leave: number): void {
    const folder = join(this.server.paths.home, "filler.files");
    mkdirSync(folder, { recursive: true });
    while (statfsSync(folder).ffree > leave) writeFileSync(join(folder, randomUUID()), "");
  }

  free(): void {
    for (const name of ["filler", "filler.rest", "filler.files"])
      rmSync(join(this.server.paths.home, name), { force: true, recursive: true });
  }

  async remove(): Promise<void> {
    this.free();
    await this.server.client.call("prune", { all: true });
    this.server.client.close();
    await this.server.down();
    // The loop device lets go of the pool's file when it is unmounted in all mount namespaces, those of other tests included.
    await eventually(
      () => spawnSync("umount", [this.server.paths.home]).status,
      (status) => status === 0,
      60_000,
    );
    this.server.clear();
  }
}
