import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newId } from "../../src/base/schema/ids.ts";
import type { Volumes } from "../../src/machine/volumes/volumes.ts";
import { needs } from "../support/skip.ts";
import { makeStorage, type Storage } from "../support/storage.ts";

const MIB = 1024 ** 2;
const NOTHING = { volumes: new Set<string>(), snapshots: new Set<string>(), bases: new Set<string>(), projects: new Set<string>() };

/** Where a file that the sandbox writes into its project lands. */
const project = (volumes: Volumes, folder: string): string =>
  join(folder, volumes.capabilities.roots === "direct" ? "roots/0" : "roots/0/upper");

async function makeBase(volumes: Volumes, name: string, files: Record<string, string>): Promise<string> {
  const tip = await volumes.openTip(name, false);
  mkdirSync(join(tip.folder, "roots/0"), { recursive: true });
  for (const [file, text] of Object.entries(files)) writeFileSync(join(tip.folder, "roots/0", file), text);
  writeFileSync(`${tip.manifests}0`, JSON.stringify(files));
  const base = newId("base");
  await volumes.freeze(name, base);
  return base;
}

const contract = (storageName: "btrfs" | "plain"): void => {
  let storage: Storage;
  let volumes: Volumes;
  const prj = newId("project");
  let base: string;
  beforeAll(async () => {
    storage = await makeStorage(storageName);
    volumes = storage.volumes;
    base = await makeBase(volumes, prj, { "a.txt": "one" });
  });
  afterAll(async () => storage?.remove());

  const create = async (bytes = 100 * MIB) => {
    const id = newId("sandbox");
    return { id, ...(await volumes.create(id, { base, project: prj }, bytes)) };
  };
  const read = (folder: string, layers: readonly string[], file: string): string | undefined => {
    const places = [join(project(volumes, folder), file), ...layers.map((layer) => join(layer, "roots/0", file))];
    const found = places.find((place) => existsSync(place));
    return found === undefined ? undefined : readFileSync(found, "utf8");
  };

  test("a volume holds what its base holds, and the base's manifests stay readable", async () => {
    const { folder, layers } = await create();
    expect(read(folder, layers, "a.txt")).toBe("one");
    expect(readFileSync(`${volumes.manifests(base)}0`, "utf8")).toContain("a.txt");
    for (const inside of ["system/upper", "system/work", "live/15/upper"]) expect(statSync(join(folder, inside)).isDirectory()).toBe(true);
  });

  test("CLONE-5 a base does not follow the tip after it was frozen", async () => {
    const before = await create();
    const later = await makeBase(volumes, prj, { "a.txt": "two", "b.txt": "new" });
    expect(read(before.folder, before.layers, "a.txt")).toBe("one");
    expect(read(before.folder, before.layers, "b.txt")).toBeUndefined();
    const after = await volumes.create(newId("sandbox"), { base: later, project: prj }, 100 * MIB);
    expect(read(after.folder, after.layers, "a.txt")).toBe("two");
    expect(read(after.folder, after.layers, "b.txt")).toBe("new");
  });

  test("SNAP-2 rolling back brings back every part of the volume, also of one that was removed", async () => {
    const { id, folder, layers } = await create();
    writeFileSync(join(project(volumes, folder), "mine"), "1");
    writeFileSync(join(folder, "system/upper/etc"), "1");
    writeFileSync(join(folder, "live/3/upper/dep"), "1");
    const snapshot = newId("snapshot");
    await volumes.snapshot(id, snapshot);
    writeFileSync(join(project(volumes, folder), "mine"), "2");
    writeFileSync(join(folder, "system/upper/etc"), "2");
    writeFileSync(join(folder, "live/3/upper/dep"), "2");
    writeFileSync(join(folder, "live/3/upper/extra"), "2");
    await volumes.rollback(id, snapshot);
    expect((await volumes.paths(id)).folder).toBe(folder);
    expect(read(folder, layers, "mine")).toBe("1");
    expect(readFileSync(join(folder, "system/upper/etc"), "utf8")).toBe("1");
    expect(readdirSync(join(folder, "live/3/upper"))).toEqual(["dep"]);
    await volumes.remove("volume", id);
    await volumes.rollback(id, snapshot);
    expect(read(folder, layers, "mine")).toBe("1");
  });

  test("SNAP-3 forks of a snapshot are independent of each other, of their origin and of its end", async () => {
    const { id, folder } = await create();
    writeFileSync(join(project(volumes, folder), "shared"), "from the origin");
    const snapshot = newId("snapshot");
    await volumes.snapshot(id, snapshot);
    const forks = await Promise.all([1, 2, 3].map(async () => volumes.create(newId("sandbox"), { snapshot }, 100 * MIB)));
    for (const [index, fork] of forks.entries()) writeFileSync(join(project(volumes, fork.folder), "own"), String(index));
    await volumes.remove("volume", id);
    await volumes.remove("snapshot", snapshot);
    for (const [index, fork] of forks.entries()) {
      expect(read(fork.folder, fork.layers, "own")).toBe(String(index));
      expect(read(fork.folder, fork.layers, "shared")).toBe("from the origin");
    }
  });

  test("copies keep links, hard links, holes, names that are not UTF-8 and whiteouts as they are", async () => {
    const { id, folder } = await create();
    const at = project(volumes, folder);
    symlinkSync("/etc/passwd", join(at, "link"));
    execFileSync("sh", ["-c", "echo x > h1; ln h1 h2; truncate -s 100M sparse; mknod white c 0 0; touch \"$(printf 'b\\377d')\""], {
      cwd: at,
    });
    const snapshot = newId("snapshot");
    await volumes.snapshot(id, snapshot);
    const fork = await volumes.create(newId("sandbox"), { snapshot }, 100 * MIB);
    const copy = project(volumes, fork.folder);
    expect(execFileSync("readlink", [join(copy, "link")], { encoding: "utf8" }).trim()).toBe("/etc/passwd");
    expect(statSync(join(copy, "h1")).ino).toBe(statSync(join(copy, "h2")).ino);
    expect(statSync(join(copy, "sparse")).blocks).toBeLessThan(100);
    expect(statSync(join(copy, "white")).rdev).toBe(0);
    expect(readdirSync(copy, { encoding: "buffer" }).some((file) => file.includes(0xff))).toBe(true);
  });

  test("what does not exist is not found, and removing it is fine", async () => {
    await expect(volumes.paths(newId("sandbox"))).rejects.toMatchObject({ code: "not_found" });
    await expect(volumes.create(newId("sandbox"), { snapshot: newId("snapshot") }, MIB)).rejects.toMatchObject({ code: "not_found" });
    for (const kind of ["volume", "snapshot", "base"] as const) await volumes.remove(kind, newId("sandbox"));
  });

  test("a create that fails leaves nothing", async () => {
    const id = newId("sandbox");
    await expect(volumes.create(id, { base: newId("base"), project: prj }, MIB)).rejects.toThrow();
    await expect(volumes.paths(id)).rejects.toMatchObject({ code: "not_found" });
  });

  test("ids that are no ids never become paths", async () => {
    await expect(volumes.paths("../../etc")).rejects.toMatchObject({ code: "internal" });
    await expect(volumes.remove("volume", "../x")).rejects.toMatchObject({ code: "internal" });
  });

  test("usage counts what the sandbox and its snapshots hold", async () => {
    const { id, folder } = await create();
    const before = await volumes.usage(id);
    writeFileSync(join(folder, "system/upper/data"), Buffer.alloc(8 * MIB, 7));
    await volumes.snapshot(id, newId("snapshot"));
    await volumes.writeBack(id);
    const grown = (await volumes.usage(id)) - before;
    expect(grown).toBeGreaterThanOrEqual(8 * MIB);
    expect(grown).toBeLessThan(20 * MIB);
  });

  test("CLONE-9 reconcile removes volumes that are not kept and what was left half-made, and only that", async () => {
    const kept = await create();
    const lost = await create();
    const snapshot = newId("snapshot");
    await volumes.snapshot(kept.id, snapshot);
    const beside = (id: string, name: string): string => join(kept.folder, "../..", id, name);
    mkdirSync(beside("volumes", ".making-1234"));
    mkdirSync(beside("bases", ".trash-1234"));
    const after = await storage.reopen();
    const removed = await after.reconcile({
      ...NOTHING,
      volumes: new Set([kept.id]),
      snapshots: new Set([snapshot]),
      bases: new Set([base]),
      projects: new Set([prj]),
    });
    expect(removed).toContain(`volume ${lost.id}`);
    expect(removed).toContain("volume .making-1234");
    expect(existsSync(beside("bases", ".trash-1234"))).toBe(false);
    expect(await after.paths(kept.id)).toMatchObject({ folder: kept.folder });
    expect(read(kept.folder, (await after.paths(kept.id)).layers, "a.txt")).toBe("one");
    await after.rollback(kept.id, snapshot);
    await after.close(false);
    expect(readdirSync(join(kept.folder, "..")).sort()).toEqual([kept.id]);
  });

  test("F-34 a rollback that was cut short between its renames is finished by reconcile", async () => {
    const { id, folder, layers } = await create();
    writeFileSync(join(project(volumes, folder), "mine"), "1");
    execFileSync("mv", [folder, join(folder, "..", `.replacing-${id}`)]);
    await volumes.reconcile({ ...NOTHING, volumes: new Set([id]), bases: new Set([base]), projects: new Set([prj]) });
    expect(read(folder, layers, "mine")).toBe("1");
  });
};

describe("volumes on btrfs", needs("root", "btrfs"), () => {
  contract("btrfs");

  describe("their quota and pool", () => {
    let storage: Storage;
    const prj = newId("project");
    let base: string;
    beforeAll(async () => {
      storage = await makeStorage("btrfs");
      base = await makeBase(storage.volumes, prj, { a: "1" });
    });
    afterAll(async () => storage?.remove());
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
      const { volumes } = storage;
      const id = newId("sandbox");
      const { folder } = await volumes.create(id, { base, project: prj }, 64 * MIB);
      expect(fill(join(folder, "system/upper/control"), 20)).toBeUndefined();
      let last = "";
      for (let round = 0; round < 2; round += 1) {
        last = newId("snapshot");
        await volumes.snapshot(id, last);
        fill(join(folder, `system/upper/more-${round}`), 15);
        await volumes.writeBack(id);
        expect(await volumes.usage(id)).toBeGreaterThanOrEqual((20 + 15 * (round + 1)) * MIB);
      }
      expect(String(fill(join(folder, "system/upper/over"), 40))).toContain("Disk quota exceeded");
      await volumes.rollback(id, last);
      expect(String(fill(join(folder, "system/upper/over"), 60))).toContain("Disk quota exceeded");
      const fork = newId("sandbox");
      const forked = await volumes.create(fork, { snapshot: last }, 32 * MIB);
      expect(fill(join(forked.folder, "system/upper/own"), 20)).toBeUndefined();
      expect(String(fill(join(forked.folder, "system/upper/over"), 40))).toContain("Disk quota exceeded");
      await volumes.limit(fork, 128 * MIB);
      expect(fill(join(forked.folder, "system/upper/over"), 40)).toBeUndefined();
    });

    test("the pool is closed to others, without setuid and devices", async () => {
      const pool = join(storage.home, "pool");
      expect(statSync(pool).mode & 0o777).toBe(0o700);
      const options = execFileSync("findmnt", ["-no", "OPTIONS", pool], { encoding: "utf8" });
      expect(options).toMatch(/nosuid/);
      expect(options).toMatch(/nodev/);
    });

    test("the pool is found again after it was unmounted", async () => {
      const { volumes } = storage;
      const id = newId("sandbox");
      const { folder } = await volumes.create(id, { base, project: prj }, 64 * MIB);
      writeFileSync(join(folder, "system/upper/kept"), "1");
      await volumes.close(false);
      execFileSync("umount", [join(storage.home, "pool")]);
      const again = await storage.reopen();
      expect(readFileSync(join((await again.paths(id)).folder, "system/upper/kept"), "utf8")).toBe("1");
    });
  });
});

describe("volumes on plain storage", () => {
  contract("plain");
});
