import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { joinParts } from "../../src/base/host/frames.ts";
import { type CellForTests, startCell } from "../support/cell.ts";
import { needs } from "../support/skip.ts";

describe("the watch on the machine", needs("linux"), () => {
  let cell: CellForTests;
  let root: string;
  const at = (path: string): string => join(root, path);
  const begin = (levels = 2): Promise<unknown> =>
    cell.ask("machine.watch", { folder: joinParts([root, String(levels)]), skip: at("skipped") });
  const changed = async (): Promise<boolean> => (await cell.ask("machine.changed")).flag("changed");

  beforeAll(() => {
    cell = startCell();
    root = join(cell.folder, "machine");
    for (const folder of ["a/b", "skipped"]) mkdirSync(at(folder), { recursive: true });
    for (const file of ["file", "a/file", "a/b/file"]) writeFileSync(at(file), "1");
  });
  afterAll(async () => cell?.remove());

  test("tells what is made, moved or closed to others in its folders, once", async () => {
    expect(await changed()).toBe(true);
    const acts = [
      () => writeFileSync(at("new"), "1"),
      () => chmodSync(at("file"), 0o600),
      () => chmodSync(at("a/file"), 0o600),
      () => chmodSync(at("a/b"), 0o700),
      () => renameSync(at("a/b/file"), at("a/moved")),
      () => mkdirSync(at("a/c")),
    ];
    for (const act of acts) {
      await begin();
      act();
      expect(await changed(), act.toString()).toBe(true);
    }
  });

  test("says nothing of contents, removals, deeper levels and folders that are left out", async () => {
    const acts = [
      () => undefined,
      () => writeFileSync(at("file"), "2"),
      () => rmSync(at("a/moved")),
      () => writeFileSync(at("a/b/deeper"), "1"),
      () => writeFileSync(at("skipped/file"), "1"),
    ];
    for (const act of acts) {
      await begin();
      act();
      // A mount that something else on this machine makes meanwhile is told once.
      expect((await changed()) && (await changed()), act.toString()).toBe(false);
    }
    await begin(64);
    writeFileSync(at("a/b/deepest"), "1");
    expect(await changed()).toBe(true);
  });

  test("tells of mounts", needs("root"), async () => {
    const mounts = (): string => readFileSync("/proc/self/mountinfo", "utf8");
    await begin();
    const before = mounts();
    execFileSync("mount", ["-t", "tmpfs", "tmpfs", at("skipped")]);
    try {
      expect(mounts()).not.toBe(before);
      expect(await changed()).toBe(true);
    } finally {
      execFileSync("umount", [at("skipped")]);
    }
  });

  test("refuses what is no folder and number of levels, and then counts everything as changed", async () => {
    await expect(cell.ask("machine.watch", { folder: root })).rejects.toThrow("levels");
    expect(await changed()).toBe(true);
    expect(await changed()).toBe(true);
  });
});
