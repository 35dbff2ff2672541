import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newId } from "../../src/base/schema/ids.ts";
import { needs } from "../support/skip.ts";
import { makeStorage, type StorageLab } from "../support/storage.ts";
import { makeBase, storageContract } from "../support/storage-contract.ts";

const MIB = 1024 ** 2;

describe("storage on btrfs", needs("root", "btrfs"), () => {
  storageContract("btrfs");

  describe("their quota and pool", () => {
    let lab: StorageLab;
    const prj = newId("project");
    let base: string;
    beforeAll(async () => {
      lab = await makeStorage("btrfs");
      base = await makeBase(lab.storage, prj, { a: "1" });
    });
    afterAll(async () => lab?.remove());
    const fill = (file: string, mib: number): Error | undefined => {
      try {
        execFileSync("dd", ["if=/dev/zero", `of=${file}`, "bs=1M", `count=${mib}`, "conv=fsync"], {
          stdio: "pipe",
          env: { ...process.env, LC_ALL: "C" },
        });
        return undefined;
      } catch (error) {
        return error as Error;
      }
    };

    test("LIM-1 the quota holds over chains of snapshots, rollbacks and forks", async () => {
      const { storage } = lab;
      const id = newId("sandbox");
      const { folder } = await storage.disks.create(id, { base, project: prj }, 64 * MIB);
      expect(fill(join(folder, "system/upper/control"), 20)).toBeUndefined();
      let last = "";
      for (let round = 0; round < 2; round += 1) {
        last = newId("snapshot");
        await storage.snapshots.take(id, last);
        fill(join(folder, `system/upper/more-${round}`), 15);
        await storage.disks.writeBack(id);
        expect(await storage.disks.usage(id)).toBeGreaterThanOrEqual((20 + 15 * (round + 1)) * MIB);
      }
      expect(String(fill(join(folder, "system/upper/over"), 40))).toContain("Disk quota exceeded");
      await storage.snapshots.restore(id, last);
      expect(String(fill(join(folder, "system/upper/over"), 60))).toContain("Disk quota exceeded");
      const fork = newId("sandbox");
      const forked = await storage.disks.create(fork, { snapshot: last }, 32 * MIB);
      expect(fill(join(forked.folder, "system/upper/own"), 20)).toBeUndefined();
      expect(String(fill(join(forked.folder, "system/upper/over"), 40))).toContain("Disk quota exceeded");
    });

    const nursery = (): string[] => {
      const folder = join(lab.home, "pool/nursery");
      return readdirSync(folder).flatMap((place) => readdirSync(join(folder, place)));
    };

    test("LIM-1 volumes that are made at once are all in their places, each with its own quota", async () => {
      const { storage } = lab;
      const ids = Array.from({ length: 24 }, () => newId("sandbox"));
      const made = await Promise.all(ids.map((id) => storage.disks.create(id, { base, project: prj }, 32 * MIB)));
      expect(made.map(({ folder }) => folder)).toEqual(ids.map((id) => join(lab.home, "pool/volumes", id)));
      for (const { folder } of made) expect(readFileSync(join(folder, "roots/0/a"), "utf8")).toBe("1");
      expect(nursery()).toEqual([]);
      const last = made.at(-1)?.folder ?? "";
      expect(fill(join(last, "system/upper/control"), 20)).toBeUndefined();
      expect(String(fill(join(last, "system/upper/over"), 40))).toContain("Disk quota exceeded");
    });

    test("a volume that a crash left on the way to its place gets there, and goes where no row knows it", async () => {
      const { storage } = lab;
      const [known, unknown] = [newId("sandbox"), newId("sandbox")];
      const place = (id: string): string => join(lab.home, "pool/volumes", id);
      for (const id of [known, unknown]) {
        const { folder } = await storage.disks.create(id, { base, project: prj }, 32 * MIB);
        writeFileSync(join(folder, "system/upper/written"), id);
        renameSync(place(id), join(lab.home, "pool/nursery/3", id));
      }
      const again = await lab.reopen();
      expect(nursery()).toEqual([]);
      expect(readFileSync(join(place(known), "system/upper/written"), "utf8")).toBe(known);
      const volumes = new Set(readdirSync(join(lab.home, "pool/volumes")).filter((name) => name !== unknown));
      await again.health.reconcile({ volumes, snapshots: new Set(), bases: new Set([base]), projects: new Set([prj]) });
      expect(existsSync(place(unknown))).toBe(false);
      expect(readFileSync(join(place(known), "system/upper/written"), "utf8")).toBe(known);
    });

    test("the pool is closed to others, without setuid and devices", async () => {
      const pool = join(lab.home, "pool");
      expect(statSync(pool).mode & 0o777).toBe(0o700);
      const options = execFileSync("findmnt", ["-no", "OPTIONS", pool], { encoding: "utf8" });
      expect(options).toMatch(/nosuid/);
      expect(options).toMatch(/nodev/);
    });

    test("the pool is found again after it was unmounted", async () => {
      const { storage } = lab;
      const id = newId("sandbox");
      const { folder } = await storage.disks.create(id, { base, project: prj }, 64 * MIB);
      writeFileSync(join(folder, "system/upper/kept"), "1");
      await storage.close(false);
      execFileSync("umount", [join(lab.home, "pool")]);
      const again = await lab.reopen();
      expect(readFileSync(join((await again.disks.paths(id)).folder, "system/upper/kept"), "utf8")).toBe("1");
    });
  });
});

describe("plain storage", () => {
  storageContract("plain");
});

describe("DRV-4 storage of unwalled sandboxes", () => {
  storageContract("folder");
});
