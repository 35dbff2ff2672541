/** What every storage does. Where one can't do a thing, its capabilities say so, and the suite asks for what it does instead. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { VivError } from "../../src/base/schema/errors.ts";
import { newId } from "../../src/base/schema/ids.ts";
import type { VolumePaths } from "../../src/machine/volumes/disks.ts";
import { projectIn, type Storage } from "../../src/machine/volumes/volumes.ts";
import { makeStorage, type StorageLab, type StorageName } from "./storage.ts";

const MIB = 1024 ** 2;
const NOTHING = { volumes: new Set<string>(), snapshots: new Set<string>(), bases: new Set<string>(), projects: new Set<string>() };

/** Where a file that the sandbox writes into its project lands. */
function written({ capabilities }: Storage, folder: string): string {
  return capabilities.roots === "direct" ? projectIn(folder) : join(projectIn(folder), "upper");
}

/** A file of the project as the sandbox sees it. */
function seen(storage: Storage, { folder, layers }: VolumePaths, file: string): string | undefined {
  const places = [written(storage, folder), ...layers.map(projectIn)].map((place) => join(place, file));
  const found = places.find((place) => existsSync(place));
  return found === undefined ? undefined : readFileSync(found, "utf8");
}

/** The folders of a volume that a sandbox writes to. */
function parts(storage: Storage, folder: string): string[] {
  const outside = storage.capabilities.holds === "machine" ? ["system/upper", "live/3/upper"] : [];
  return [written(storage, folder), ...outside.map((part) => join(folder, part))];
}

/** What a look gives, or the code of its refusal. */
function orCode(look: () => unknown): unknown {
  try {
    return look();
  } catch (error) {
    return error instanceof VivError ? error.code : String(error);
  }
}

export async function makeBase({ bases }: Storage, project: string, files: Record<string, string>): Promise<string> {
  const tip = await bases.openTip(project, false);
  mkdirSync(projectIn(tip.folder), { recursive: true });
  for (const [file, text] of Object.entries(files)) writeFileSync(join(projectIn(tip.folder), file), text);
  writeFileSync(`${tip.manifests}0`, JSON.stringify(files));
  const base = newId("base");
  await bases.freeze(project, base);
  return base;
}

export function storageContract(name: StorageName): void {
  let lab: StorageLab;
  let storage: Storage;
  let base: string;
  const project = newId("project");
  beforeAll(async () => {
    lab = await makeStorage(name);
    storage = lab.storage;
    base = await makeBase(storage, project, { "a.txt": "one" });
  });
  afterAll(async () => lab?.remove());

  const create = async (from = base): Promise<VolumePaths & { id: string }> => {
    const id = newId("sandbox");
    return { id, ...(await storage.disks.create(id, { base: from, project }, 100 * MIB)) };
  };
  const take = async (volume: string): Promise<string> => {
    const snapshot = newId("snapshot");
    await storage.snapshots.take(volume, snapshot);
    return snapshot;
  };

  describe("bases", () => {
    test("a base keeps the manifests that it was frozen with", async () => {
      expect(readFileSync(`${await storage.bases.manifests(base)}0`, "utf8")).toContain("a.txt");
    });

    test("CLONE-5 a base does not follow the tip after it was frozen", async () => {
      const before = await create();
      const later = await makeBase(storage, project, { "a.txt": "two", "b.txt": "new" });
      expect(seen(storage, before, "a.txt")).toBe("one");
      expect(seen(storage, before, "b.txt")).toBeUndefined();
      const after = await create(later);
      expect(seen(storage, after, "a.txt")).toBe("two");
      expect(seen(storage, after, "b.txt")).toBe("new");
    });

    test("a fresh tip holds nothing of the one before", async () => {
      const own = newId("project");
      await makeBase(storage, own, { "a.txt": "one" });
      const tip = await storage.bases.openTip(own, true);
      expect(readdirSync(join(tip.folder, "roots"))).toEqual([]);
      expect(existsSync(`${tip.manifests}0`)).toBe(false);
    });

    test("a base that is removed takes nothing away from its volumes", async () => {
      const own = await makeBase(storage, project, { "a.txt": "three" });
      const made = await create(own);
      await storage.bases.remove(own);
      expect(seen(storage, made, "a.txt")).toBe("three");
    });
  });

  describe("disks", () => {
    test("a volume holds what its base holds, and room for what the sandbox writes", async () => {
      const made = await create();
      expect(seen(storage, made, "a.txt")).toBe("one");
      for (const part of parts(storage, made.folder)) expect(statSync(part).isDirectory()).toBe(true);
      expect(await storage.disks.paths(made.id)).toEqual({ folder: made.folder, layers: made.layers });
    });

    test("what is written to a volume is in that volume alone", async () => {
      const [made, other] = [await create(), await create()];
      for (const part of parts(storage, made.folder)) writeFileSync(join(part, "a.txt"), "mine");
      await storage.disks.writeBack(made.id);
      expect(seen(storage, made, "a.txt")).toBe("mine");
      for (const each of [other, await create()]) {
        expect(seen(storage, each, "a.txt")).toBe("one");
        for (const part of parts(storage, each.folder).slice(1)) expect(readdirSync(part)).toEqual([]);
      }
    });

    test("what does not exist is not found, and removing it is fine", async () => {
      const { disks, snapshots, bases } = storage;
      await expect(disks.paths(newId("sandbox"))).rejects.toMatchObject({ code: "not_found" });
      await expect(disks.create(newId("sandbox"), { snapshot: newId("snapshot") }, MIB)).rejects.toMatchObject({ code: "not_found" });
      for (const port of [disks, snapshots, bases]) await port.remove(newId("sandbox"));
    });

    test("a second volume of the same id is refused, and the first one stays", async () => {
      const made = await create();
      writeFileSync(join(written(storage, made.folder), "mine"), "1");
      await expect(storage.disks.create(made.id, { base, project }, MIB)).rejects.toMatchObject({ code: "exists" });
      expect(seen(storage, made, "mine")).toBe("1");
    });

    test("a create that fails leaves nothing", async () => {
      const id = newId("sandbox");
      await expect(storage.disks.create(id, { base: newId("base"), project }, MIB)).rejects.toThrow();
      await expect(storage.disks.paths(id)).rejects.toMatchObject({ code: "not_found" });
    });

    test("ids that are no ids never become paths", async () => {
      await expect(storage.disks.paths("../../etc")).rejects.toMatchObject({ code: "internal" });
      for (const port of [storage.disks, storage.bases]) await expect(port.remove("../x")).rejects.toMatchObject({ code: "internal" });
      await expect(storage.snapshots.take((await create()).id, "../x")).rejects.toMatchObject({ code: "internal" });
    });

    test("usage counts what the sandbox and its snapshots hold, and not what it got", async () => {
      const { disks } = storage;
      const { id, folder } = await create();
      const before = await disks.usage(id);
      writeFileSync(join(written(storage, folder), "data"), Buffer.alloc(8 * MIB, 7));
      await take(id);
      await disks.writeBack(id);
      // A walk is not repeated before many times its own duration have passed, which is long on a busy machine.
      await expect.poll(async () => (await disks.usage(id)) - before, { timeout: 20_000 }).toBeGreaterThanOrEqual(8 * MIB);
      expect((await disks.usage(id)) - before).toBeLessThan(20 * MIB);
    });
  });

  describe("snapshots", () => {
    test("SNAP-2 restoring brings back every part of the volume, also of one that was removed", async () => {
      const made = await create();
      const fill = (file: string, text: string): void =>
        parts(storage, made.folder).forEach((part) => writeFileSync(join(part, file), text));
      fill("mine", "1");
      const snapshot = await take(made.id);
      fill("mine", "2");
      fill("extra", "2");
      const isBack = (): void => {
        for (const part of parts(storage, made.folder)) {
          expect(readFileSync(join(part, "mine"), "utf8")).toBe("1");
          expect(existsSync(join(part, "extra"))).toBe(false);
        }
        expect(seen(storage, made, "a.txt")).toBe("one");
      };
      await storage.snapshots.restore(made.id, snapshot);
      expect((await storage.disks.paths(made.id)).folder).toBe(made.folder);
      isBack();
      await storage.disks.remove(made.id);
      await storage.snapshots.restore(made.id, snapshot);
      isBack();
    });

    test("SNAP-3 forks are independent of each other, of their origin and of its end", async () => {
      const { id, folder } = await create();
      writeFileSync(join(written(storage, folder), "shared"), "from the origin");
      const snapshot = await take(id);
      const forks = await Promise.all([1, 2, 3].map(async () => storage.disks.create(newId("sandbox"), { snapshot }, 100 * MIB)));
      for (const [index, fork] of forks.entries()) writeFileSync(join(written(storage, fork.folder), "own"), String(index));
      await storage.disks.remove(id);
      await storage.snapshots.remove(snapshot);
      for (const [index, fork] of forks.entries()) {
        expect(seen(storage, fork, "own")).toBe(String(index));
        expect(seen(storage, fork, "shared")).toBe("from the origin");
      }
    });

    test("copies keep links, modes, names that are not UTF-8, and where all of a machine is held, hard links, holes and whiteouts", async () => {
      const { id, folder } = await create();
      const at = written(storage, folder);
      symlinkSync("/etc/passwd", join(at, "link"));
      writeFileSync(join(at, "program"), "", { mode: 0o555 });
      const line = "echo x > h1; ln h1 h2; truncate -s 100M sparse; mknod white c 0 0; touch \"$(printf 'b\\377d')\"";
      execFileSync("sh", ["-c", line], { cwd: at });
      const fork = await storage.disks.create(newId("sandbox"), { snapshot: await take(id) }, 100 * MIB);
      const copy = written(storage, fork.folder);
      expect(readlinkSync(join(copy, "link"))).toBe("/etc/passwd");
      expect(statSync(join(copy, "program")).mode & 0o777).toBe(0o555);
      expect(readdirSync(copy, { encoding: "buffer" }).some((file) => file.includes(0xff))).toBe(true);
      expect(statSync(join(copy, "sparse")).size).toBe(100 * MIB);
      if (storage.capabilities.holds === "project") return;
      expect(statSync(join(copy, "h1")).ino).toBe(statSync(join(copy, "h2")).ino);
      expect(statSync(join(copy, "sparse")).blocks).toBeLessThan(100);
      expect(statSync(join(copy, "white")).rdev).toBe(0);
    });

    test("SNAP-1 a snapshot is what was sealed, also for a later server, until it is gone", async () => {
      const { id, folder } = await create();
      writeFileSync(join(written(storage, folder), "mine"), "1");
      const snapshot = await take(id);
      const seal = await storage.snapshots.seal(snapshot);
      const later = await lab.reopen();
      for (const { snapshots } of [storage, later]) {
        await snapshots.verify(snapshot, seal);
        await snapshots.verify(snapshot, undefined);
      }
      await later.snapshots.remove(snapshot);
      await expect(later.snapshots.verify(snapshot, seal)).rejects.toMatchObject({ code: "snapshot_damaged" });
    });
  });

  describe("comparison", () => {
    test("the old side is the base and the new one what the sandbox wrote, of a volume and of a snapshot", async () => {
      const made = await create();
      writeFileSync(join(written(storage, made.folder), "mine"), "1");
      const snapshot = await take(made.id);
      for (const of of [{ volume: made.id }, { snapshot }]) {
        const sides = await storage.comparison.sides(of, base);
        expect(readFileSync(join(sides.new, "mine"), "utf8")).toBe("1");
        expect(sides.old.map((folder) => readdirSync(folder))).toEqual([["a.txt"]]);
        expect(sides.overlay).toBe(storage.capabilities.roots === "overlay");
      }
    });

    test("steps lead from one base to another, and none from a base to itself", async () => {
      const own = newId("project");
      const first = await makeBase(storage, own, { "a.txt": "one" });
      const second = await makeBase(storage, own, { "a.txt": "two" });
      expect(await storage.comparison.between(first, first)).toEqual({ back: [], forth: [] });
      const { back, forth } = await storage.comparison.between(first, second);
      expect([back.length, forth.length]).toEqual([0, 1]);
      expect(readFileSync(join(forth[0]?.new ?? "", "a.txt"), "utf8")).toBe("two");
      expect(readFileSync(join(forth[0]?.old[0] ?? "", "a.txt"), "utf8")).toBe("one");
    });

    test("what lies outside the project is compared where a volume holds it, and refused where it does not", async () => {
      const { comparison, capabilities } = storage;
      const { id, folder } = await create();
      const live = { path: "/srv/shared", slot: 3 };
      const told = [() => comparison.live({ volume: id }, live), () => comparison.system({ volume: id })[0]].map(orCode);
      const sides = [
        { old: [live.path], new: join(folder, "live/3/upper"), overlay: true },
        { at: "/", sides: { old: ["/"], new: join(folder, "system/upper"), overlay: true } },
      ];
      expect(told).toEqual(capabilities.holds === "machine" ? sides : ["unsupported", "unsupported"]);
    });
  });

  describe("health", () => {
    test("tells its space, and what it knows of the disk's errors", async () => {
      const { totalBytes, freeBytes } = await storage.health.free();
      expect(totalBytes).toBeGreaterThan(freeBytes);
      expect(freeBytes).toBeGreaterThan(0);
      expect(storage.health.errors() ?? 0).toBe(0);
      expect(storage.health.repair?.due() ?? false).toBe(false);
    });

    test("CLONE-9 reconcile removes what is not kept and what was left half-made, and only that", async () => {
      const kept = await create();
      const lost = await create();
      const snapshot = await take(kept.id);
      const beside = (kind: string, file: string): string => join(kept.folder, "../..", kind, file);
      // What this server made itself is left to its own remove().
      const keep = { volumes: new Set([kept.id]), snapshots: new Set([snapshot]), bases: new Set([base]), projects: new Set([project]) };
      expect(await storage.health.reconcile(keep)).not.toContain(`volume ${lost.id}`);
      // No two servers remove things in one folder.
      const names = (): string[] => ["volumes", "snapshots", "bases", "tips"].flatMap((kind) => readdirSync(beside(kind, "")));
      await expect.poll(() => names().filter((file) => file.startsWith(".")), { timeout: 20_000 }).toEqual([]);
      mkdirSync(beside("volumes", ".making-1234"));
      mkdirSync(beside("bases", ".trash-1234"));
      mkdirSync(beside("volumes", "of-a-person"));
      const after = await lab.reopen();
      const removed = await after.health.reconcile(keep);
      expect(removed).toContain(`volume ${lost.id}`);
      expect(removed).toContain("volume .making-1234");
      expect(existsSync(beside("bases", ".trash-1234"))).toBe(false);
      const paths = await after.disks.paths(kept.id);
      expect(paths.folder).toBe(kept.folder);
      expect(seen(after, paths, "a.txt")).toBe("one");
      await after.snapshots.restore(kept.id, snapshot);
      await after.close(false);
      expect(readdirSync(join(kept.folder, "..")).toSorted()).toEqual(["of-a-person", kept.id].toSorted());
    });

    test("F-34 a restore that was cut short between its renames is finished by reconcile", async () => {
      const made = await create();
      writeFileSync(join(written(storage, made.folder), "mine"), "1");
      execFileSync("mv", [made.folder, join(made.folder, "..", `.replacing-${made.id}`)]);
      await storage.health.reconcile({ ...NOTHING, volumes: new Set([made.id]), bases: new Set([base]), projects: new Set([project]) });
      expect(seen(storage, made, "mine")).toBe("1");
    });
  });
}
