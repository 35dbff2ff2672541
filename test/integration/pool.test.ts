import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { CellHost } from "../../src/base/host/cell-host.ts";
import { newId } from "../../src/base/schema/ids.ts";
import { openBtrfs } from "../../src/machine/volumes/btrfs/storage.ts";
import type { Storage } from "../../src/machine/volumes/volumes.ts";
import { needs } from "../support/skip.ts";
import { CELL } from "../support/storage.ts";

const MIB = 1024 ** 2;

/** The host's disk is a tmpfs, so that it can be small and change its size. */
describe("the pool file on a small disk", needs("root", "btrfs"), () => {
  const home = realpathSync(mkdtempSync(join(tmpdir(), "viv-pool-")));
  const project = newId("project");
  const base = newId("base");
  let host: CellHost;
  let storage: Storage;
  const resize = (mib: number): Buffer => execFileSync("mount", ["-o", `remount,size=${mib}m`, home]);
  beforeAll(() => {
    host = new CellHost({ program: CELL });
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=1100m", "tmpfs", home]);
  });
  afterAll(async () => {
    await storage?.close(true);
    await host.close();
    // The loop device lets go of its file a moment after the pool is unmounted.
    await vi.waitFor(() => execFileSync("umount", [home], { stdio: "ignore" }), { timeout: 60_000 });
    rmSync(home, { recursive: true });
  });

  test("F-17 no pool is made where the host would be left without space", async () => {
    await expect(openBtrfs(host, { home, shared: "joined" })).rejects.toMatchObject({ code: "disk_full" });
    expect(existsSync(join(home, "pool.img"))).toBe(false);
    expect(existsSync(join(home, "pool.img.making"))).toBe(false);
  });

  test("a pool is no larger than the space the host can spare, and half-made ones are made anew", async () => {
    resize(1400);
    execFileSync("sh", ["-c", "echo half > pool.img.making"], { cwd: home });
    storage = await openBtrfs(host, { home, shared: "joined", limitBytes: 600 * MIB });
    const { size } = statSync(join(home, "pool.img"));
    expect(size).toBeGreaterThan(300 * MIB);
    expect(size).toBeLessThan(400 * MIB);
    const tip = await storage.bases.openTip(project, false);
    mkdirSync(join(tip.folder, "roots/0"));
    await storage.bases.freeze(project, base);
  });

  test("the pool grows while it is in use, up to its limit", async () => {
    const { totalBytes } = await storage.health.free();
    const { folder } = await storage.disks.create(newId("sandbox"), { base, project }, 1024 * MIB);
    execFileSync("dd", ["if=/dev/urandom", `of=${join(folder, "system/upper/data")}`, "bs=1M", "count=310", "conv=fsync"], {
      stdio: "pipe",
    });
    resize(2400);
    const grown = await storage.health.free();
    expect(grown.totalBytes).toBeGreaterThan(totalBytes + 100 * MIB);
    expect(grown.totalBytes).toBeLessThanOrEqual(600 * MIB);
    expect(grown.freeBytes).toBeGreaterThan(100 * MIB);
  });

  test("F-17 nothing is made when the host's disk runs low, and everything is again when it does not", async () => {
    const id = newId("sandbox");
    resize(1200);
    for (const attempt of [() => storage.disks.create(id, { base, project }, MIB), () => storage.bases.openTip(project, false)]) {
      await expect(attempt()).rejects.toMatchObject({ code: "disk_full" });
    }
    await expect(storage.disks.paths(id)).rejects.toMatchObject({ code: "not_found" });
    resize(2400);
    await storage.disks.create(id, { base, project }, MIB);
  });

  test("the host gets back what removals leave, soon after they are written, and all of it before the pool is closed", async () => {
    const heldMib = (): number => (statSync(join(home, "pool.img")).blocks * 512) / MIB;
    const fill = async (): Promise<void> => {
      const { folder } = await storage.disks.create(newId("sandbox"), { base, project }, 1024 * MIB);
      execFileSync("dd", ["if=/dev/urandom", `of=${join(folder, "system/upper/data")}`, "bs=1M", "count=100", "conv=fsync"], {
        stdio: "pipe",
      });
    };
    const keep = { volumes: new Set<string>(), snapshots: new Set<string>(), bases: new Set([base]), projects: new Set([project]) };
    const removeAll = async (): Promise<void> => {
      for (const id of readdirSync(join(home, "pool/volumes"))) await storage.disks.remove(id);
    };
    await fill();
    expect(heldMib()).toBeGreaterThan(400);
    await removeAll();
    await vi.waitFor(
      async () => {
        // The kernel does this by itself every half a minute.
        execFileSync("btrfs", ["filesystem", "sync", join(home, "pool")], { stdio: "ignore" });
        await storage.health.reconcile(keep);
        expect(heldMib()).toBeLessThan(60);
      },
      { timeout: 40_000, interval: 300 },
    );
    await fill();
    await removeAll();
    await storage.close(true);
    expect(heldMib()).toBeLessThan(60);
  }, 60_000);
});
