/** What the kernel knows of a frozen subvolume finds the same changes as a look at every file. */
import { execFileSync } from "node:child_process";
import { linkSync, mkdirSync, renameSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type CellForTests, startCell } from "../support/cell.ts";
import { Mutations } from "../support/mutations.ts";
import { needs } from "../support/skip.ts";

interface Found {
  readonly rows: readonly string[];
  /** How many inodes the kernel named; undefined where every file was looked at. */
  readonly touched: number | undefined;
}

describe("diff of frozen subvolumes", needs("btrfs"), () => {
  let cell: CellForTests;
  let pool: string;
  let count = 0;
  beforeAll(async () => {
    cell = startCell();
    pool = cell.pool();
  });
  afterAll(async () => cell?.remove());

  const diff = async (old: string, now: string): Promise<Found> => {
    const reply = await cell.ask("diff", { old: join(old, "root"), new: join(now, "root") });
    return { rows: reply.all("row").toSorted(), touched: reply.number("touched") };
  };

  /** A base of what `make` writes, a volume of it, and how to compare the two: frozen, and as it is. */
  async function scene(make: (root: string) => void): Promise<{ root: string; volume: string; both: () => Promise<[Found, Found]> }> {
    const place = join(pool, `scene${count++}`);
    mkdirSync(place);
    const [tip, base, volume] = [join(place, "tip"), join(place, "base"), join(place, "volume")];
    await cell.ask("btrfs.create", { path: tip });
    mkdirSync(join(tip, "root"));
    make(join(tip, "root"));
    await cell.ask("btrfs.snapshot", { source: tip, path: base, readonly: 1 });
    await cell.ask("btrfs.snapshot", { source: base, path: volume });
    let snapshots = 0;
    const both = async (): Promise<[Found, Found]> => {
      const frozen = join(place, `frozen${snapshots++}`);
      await cell.ask("btrfs.snapshot", { source: volume, path: frozen, readonly: 1 });
      return [await diff(base, frozen), await diff(base, volume)];
    };
    return { root: join(volume, "root"), volume, both };
  }

  test.each([1, 2, 3, 4])("finds random changes, seed %i", async (seed) => {
    const { root, both } = await scene((tip) => {
      const before = new Mutations(tip, seed);
      for (let change = 0; change < 200; change++) before.change();
    });
    const mutations = new Mutations(root, seed + 100);
    for (let round = 0; round < 15; round++) {
      for (let change = 0; change < 8; change++) mutations.change();
      const [frozen, looked] = await both();
      expect(frozen.rows).toEqual(looked.rows);
      expect([frozen.touched === undefined, looked.touched]).toEqual([false, undefined]);
    }
  });

  test.each([5, 6, 7])("finds the changes since a later base of the same tip, also when the first one is gone, seed %i", async (seed) => {
    const place = join(pool, `later${count++}`);
    mkdirSync(place);
    const at = (name: string): string => join(place, name);
    await cell.ask("btrfs.create", { path: at("tip") });
    mkdirSync(join(at("tip"), "root"));
    const reality = new Mutations(join(at("tip"), "root"), seed);
    for (let change = 0; change < 200; change++) reality.change();
    await cell.ask("btrfs.snapshot", { source: at("tip"), path: at("first"), readonly: 1 });
    const made = await cell.ask("btrfs.identity", { path: at("first") });
    for (let change = 0; change < 20; change++) reality.change();
    await cell.ask("btrfs.snapshot", { source: at("first"), path: at("volume") });
    writeFileSync(at("origin"), `${made.get("uuid")} ${made.get("transaction")} ${made.get("parent")}\n`);
    const inside = new Mutations(join(at("volume"), "root"), seed + 100);
    for (let round = 0; round < 10; round++) {
      for (let change = 0; change < 8; change++) (round < 5 ? inside : reality).change();
      await cell.ask("btrfs.snapshot", { source: at("tip"), path: at(`base${round}`), readonly: 1 });
      await cell.ask("btrfs.snapshot", { source: at("volume"), path: at(`frozen${round}`), readonly: 1 });
      if (round === 3) await cell.ask("btrfs.delete", { path: at("first") });
      const fields = { old: join(at(`base${round}`), "root"), new: join(at(`frozen${round}`), "root") };
      const looked = await cell.ask("diff", fields);
      const known = await cell.ask("diff", { ...fields, origin: at("origin") });
      expect(known.all("row").toSorted()).toEqual(looked.all("row").toSorted());
      expect([known.number("touched") === undefined, looked.number("touched")]).toEqual([false, undefined]);
    }
    writeFileSync(at("origin"), `${made.get("parent")} ${made.get("transaction")} ${made.get("uuid")}\n`);
    const other = await cell.ask("diff", { old: join(at("base9"), "root"), new: join(at("frozen9"), "root"), origin: at("origin") });
    expect(other.number("touched"), "the kernel knows of no such origin").toBeUndefined();
  });

  test("finds what changed without a trace in size and time, under another name, and in folders that were exchanged", async () => {
    const { root, both } = await scene((tip) => {
      for (const folder of ["a/deep/er", "b/deep/er", "c"]) mkdirSync(join(tip, folder), { recursive: true });
      for (const name of ["a/deep/er/1", "b/deep/er/1", "b/deep/er/2", "c/file", "c/other", "c/linked"])
        writeFileSync(join(tip, name), name);
      writeFileSync(join(tip, "a/deep/same"), "same");
      writeFileSync(join(tip, "b/deep/same"), "same");
      linkSync(join(tip, "c/linked"), join(tip, "a/linked"));
      utimesSync(join(tip, "c/file"), 1, 1);
    });
    expect((await both())[0].rows).toEqual([]);
    writeFileSync(join(root, "c/file"), "c/FILE");
    utimesSync(join(root, "c/file"), 1, 1);
    writeFileSync(join(root, "c/linked"), "c/LINKED");
    for (const [from, to] of [
      ["a", "x"],
      ["b", "a"],
      ["x", "b"],
    ] as const)
      renameSync(join(root, from), join(root, to));
    const [frozen, looked] = await both();
    expect(frozen.rows).toEqual(looked.rows);
    const names = frozen.rows.map((row) => row.split("\x1f").join(" "));
    const expected = ["M file c/file", "M file c/linked", "M file a/deep/er/1", "A file a/deep/er/2", "A file b/linked", "D file a/linked"];
    expect(names).toEqual(expect.arrayContaining(expected));
    expect(names).not.toContain("M file c/other");
  });

  test("names few inodes of many, also of a base whose files are as new as itself", async () => {
    const { root, both } = await scene((tip) => {
      for (let folder = 0; folder < 40; folder++) {
        mkdirSync(join(tip, String(folder)));
        for (let file = 0; file < 25; file++) writeFileSync(join(tip, String(folder), String(file)), `${folder} ${file}`);
      }
    });
    writeFileSync(join(root, "7/7"), "another");
    const [frozen] = await both();
    expect(frozen.rows.map((row) => row.split("\x1f").at(-1))).toEqual(["7/7"]);
    expect(frozen.touched).toBeLessThan(10);
  });

  test("looks at every file where the two are not of one line, or one in between is gone", async () => {
    const { root, volume, both } = await scene((tip) => writeFileSync(join(tip, "file"), "1"));
    writeFileSync(join(root, "file"), "2");
    expect((await both())[0].touched).toBeTypeOf("number");
    const place = join(volume, "..");
    const [base, frozen] = [join(place, "base"), join(place, "frozen0")];
    const other = join(place, "other");
    await cell.ask("btrfs.create", { path: other });
    execFileSync("cp", ["-a", join(root), other]);
    await cell.ask("btrfs.readonly", { path: other, readonly: 1 });
    expect(await diff(base, other)).toMatchObject({ rows: ["M\x1ffile\x1ffile"], touched: undefined });
    expect(await diff(frozen, base)).toMatchObject({ rows: ["M\x1ffile\x1ffile"], touched: undefined });
    await cell.ask("btrfs.delete", { path: volume });
    expect(await diff(base, frozen)).toMatchObject({ rows: ["M\x1ffile\x1ffile"], touched: undefined });
  });
});
