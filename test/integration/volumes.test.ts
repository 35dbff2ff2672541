import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newId } from "../../src/base/schema/ids.ts";
import type { Storage } from "../../src/machine/volumes/volumes.ts";
import { needs } from "../support/skip.ts";
import { makeStorage, type StorageLab } from "../support/storage.ts";

const MIB = 1024 ** 2;
const NOTHING = { volumes: new Set<string>(), snapshots: new Set<string>(), bases: new Set<string>(), projects: new Set<string>() };

/** Where a file that the sandbox writes into its project lands. */
const project = ({ capabilities }: Storage, folder: string): string =>
  join(folder, capabilities.roots === "direct" ? "roots/0" : "roots/0/upper");

async function makeBase(storage: Storage, name: string, files: Record<string, string>): Promise<string> {
  const tip = await storage.bases.openTip(name, false);
  mkdirSync(join(tip.folder, "roots/0"), { recursive: true });
  for (const [file, text] of Object.entries(files)) writeFileSync(join(tip.folder, "roots/0", file), text);
  writeFileSync(`${tip.manifests}0`, JSON.stringify(files));
  const base = newId("base");
  await storage.bases.freeze(name, base);
  return base;
}

const contract = (storageName: "btrfs" | "plain"): void => {
  let lab: StorageLab;
  let storage: Storage;
  const prj = newId("project");
  let base: string;
  beforeAll(async () => {
    lab = await makeStorage(storageName);
    storage = lab.storage;
    base = await makeBase(storage, prj, { "a.txt": "one" });
  });
  afterAll(async () => lab?.remove());

  const create = async (bytes = 100 * MIB) => {
    const id = newId("sandbox");
    return { id, ...(await storage.disks.create(id, { base, project: prj }, bytes)) };
  };
  const read = (folder: string, layers: readonly string[], file: string): string | undefined => {
    const places = [join(project(storage, folder), file), ...layers.map((layer) => join(layer, "roots/0", file))];
    const found = places.find((place) => existsSync(place));
    return found === undefined ? undefined : readFileSync(found, "utf8");
  };

  test("a volume holds what its base holds, and the base's manifests stay readable", async () => {
    const { folder, layers } = await create();
    expect(read(folder, layers, "a.txt")).toBe("one");
    expect(readFileSync(`${storage.bases.manifests(base)}0`, "utf8")).toContain("a.txt");
    for (const inside of ["system/upper", "system/work", "live/15/upper"]) expect(statSync(join(folder, inside)).isDirectory()).toBe(true);
  });

  test("CLONE-5 a base does not follow the tip after it was frozen", async () => {
    const before = await create();
    const later = await makeBase(storage, prj, { "a.txt": "two", "b.txt": "new" });
    expect(read(before.folder, before.layers, "a.txt")).toBe("one");
    expect(read(before.folder, before.layers, "b.txt")).toBeUndefined();
    const after = await storage.disks.create(newId("sandbox"), { base: later, project: prj }, 100 * MIB);
    expect(read(after.folder, after.layers, "a.txt")).toBe("two");
    expect(read(after.folder, after.layers, "b.txt")).toBe("new");
  });

  test("SNAP-2 rolling back brings back every part of the volume, also of one that was removed", async () => {
    const { id, folder, layers } = await create();
    writeFileSync(join(project(storage, folder), "mine"), "1");
    writeFileSync(join(folder, "system/upper/etc"), "1");
    writeFileSync(join(folder, "live/3/upper/dep"), "1");
    const snapshot = newId("snapshot");
    await storage.snapshots.take(id, snapshot);
    writeFileSync(join(project(storage, folder), "mine"), "2");
    writeFileSync(join(folder, "system/upper/etc"), "2");
    writeFileSync(join(folder, "live/3/upper/dep"), "2");
    writeFileSync(join(folder, "live/3/upper/extra"), "2");
    await storage.snapshots.restore(id, snapshot);
    expect((await storage.disks.paths(id)).folder).toBe(folder);
    expect(read(folder, layers, "mine")).toBe("1");
    expect(readFileSync(join(folder, "system/upper/etc"), "utf8")).toBe("1");
    expect(readdirSync(join(folder, "live/3/upper"))).toEqual(["dep"]);
    await storage.disks.remove(id);
    await storage.snapshots.restore(id, snapshot);
    expect(read(folder, layers, "mine")).toBe("1");
  });

  test("SNAP-3 forks of a snapshot are independent of each other, of their origin and of its end", async () => {
    const { id, folder } = await create();
    writeFileSync(join(project(storage, folder), "shared"), "from the origin");
    const snapshot = newId("snapshot");
    await storage.snapshots.take(id, snapshot);
    const forks = await Promise.all([1, 2, 3].map(async () => storage.disks.create(newId("sandbox"), { snapshot }, 100 * MIB)));
    for (const [index, fork] of forks.entries()) writeFileSync(join(project(storage, fork.folder), "own"), String(index));
    await storage.disks.remove(id);
    await storage.snapshots.remove(snapshot);
    for (const [index, fork] of forks.entries()) {
      expect(read(fork.folder, fork.layers, "own")).toBe(String(index));
      expect(read(fork.folder, fork.layers, "shared")).toBe("from the origin");
    }
  });

  test("copies keep links, hard links, holes, names that are not UTF-8 and whiteouts as they are", async () => {
    const { id, folder } = await create();
    const at = project(storage, folder);
    symlinkSync("/etc/passwd", join(at, "link"));
    execFileSync("sh", ["-c", "echo x > h1; ln h1 h2; truncate -s 100M sparse; mknod white c 0 0; touch \"$(printf 'b\\377d')\""], {
      cwd: at,
    });
    const snapshot = newId("snapshot");
    await storage.snapshots.take(id, snapshot);
    const fork = await storage.disks.create(newId("sandbox"), { snapshot }, 100 * MIB);
    const copy = project(storage, fork.folder);
    expect(execFileSync("readlink", [join(copy, "link")], { encoding: "utf8" }).trim()).toBe("/etc/passwd");
    expect(statSync(join(copy, "h1")).ino).toBe(statSync(join(copy, "h2")).ino);
    expect(statSync(join(copy, "sparse")).blocks).toBeLessThan(100);
    expect(statSync(join(copy, "white")).rdev).toBe(0);
    expect(readdirSync(copy, { encoding: "buffer" }).some((file) => file.includes(0xff))).toBe(true);
  });

  test("what does not exist is not found, and removing it is fine", async () => {
    await expect(storage.disks.paths(newId("sandbox"))).rejects.toMatchObject({ code: "not_found" });
    await expect(storage.disks.create(newId("sandbox"), { snapshot: newId("snapshot") }, MIB)).rejects.toMatchObject({ code: "not_found" });
    for (const port of [storage.disks, storage.snapshots, storage.bases]) await port.remove(newId("sandbox"));
  });

  test("a create that fails leaves nothing", async () => {
    const id = newId("sandbox");
    await expect(storage.disks.create(id, { base: newId("base"), project: prj }, MIB)).rejects.toThrow();
    await expect(storage.disks.paths(id)).rejects.toMatchObject({ code: "not_found" });
  });

  test("ids that are no ids never become paths", async () => {
    await expect(storage.disks.paths("../../etc")).rejects.toMatchObject({ code: "internal" });
    await expect(storage.disks.remove("../x")).rejects.toMatchObject({ code: "internal" });
  });

  test("usage counts what the sandbox and its snapshots hold", async () => {
    const { id, folder } = await create();
    const before = await storage.disks.usage(id);
    writeFileSync(join(folder, "system/upper/data"), Buffer.alloc(8 * MIB, 7));
    await storage.snapshots.take(id, newId("snapshot"));
    await storage.disks.writeBack(id);
    const grown = (await storage.disks.usage(id)) - before;
    expect(grown).toBeGreaterThanOrEqual(8 * MIB);
    expect(grown).toBeLessThan(20 * MIB);
  });

  test("CLONE-9 reconcile removes volumes that are not kept and what was left half-made, and only that", async () => {
    const kept = await create();
    const lost = await create();
    const snapshot = newId("snapshot");
    await storage.snapshots.take(kept.id, snapshot);
    const beside = (id: string, name: string): string => join(kept.folder, "../..", id, name);
    mkdirSync(beside("volumes", ".making-1234"));
    mkdirSync(beside("bases", ".trash-1234"));
    const after = await lab.reopen();
    const removed = await after.health.reconcile({
      ...NOTHING,
      volumes: new Set([kept.id]),
      snapshots: new Set([snapshot]),
      bases: new Set([base]),
      projects: new Set([prj]),
    });
    expect(removed).toContain(`volume ${lost.id}`);
    expect(removed).toContain("volume .making-1234");
    expect(existsSync(beside("bases", ".trash-1234"))).toBe(false);
    expect(await after.disks.paths(kept.id)).toMatchObject({ folder: kept.folder });
    expect(read(kept.folder, (await after.disks.paths(kept.id)).layers, "a.txt")).toBe("one");
    await after.snapshots.restore(kept.id, snapshot);
    await after.close(false);
    expect(readdirSync(join(kept.folder, "..")).sort()).toEqual([kept.id]);
  });

  test("F-34 a rollback that was cut short between its renames is finished by reconcile", async () => {
    const { id, folder, layers } = await create();
    writeFileSync(join(project(storage, folder), "mine"), "1");
    execFileSync("mv", [folder, join(folder, "..", `.replacing-${id}`)]);
    await storage.health.reconcile({ ...NOTHING, volumes: new Set([id]), bases: new Set([base]), projects: new Set([prj]) });
    expect(read(folder, layers, "mine")).toBe("1");
  });
};

describe("volumes on btrfs", needs("root", "btrfs"), () => {
  contract("btrfs");

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

describe("volumes on plain storage", () => {
  contract("plain");
});
