import { appendFileSync, chmodSync, closeSync, linkSync, mkdirSync, openSync, renameSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type CellForTests, startCell } from "../support/cell.ts";
import { needs } from "../support/skip.ts";

describe.each(["fanotify", "inotify"])("watch by %s", (kind) => {
  const options = kind === "fanotify" ? needs("linux", "root") : needs("linux");
  let cell: CellForTests;
  let root: string;
  beforeAll(() => {
    cell = startCell();
    root = join(cell.folder, "project");
    mkdirSync(join(root, "a/b"), { recursive: true });
    mkdirSync(join(root, "node_modules/x"), { recursive: true });
  });
  afterAll(async () => cell?.remove());

  const drain = async (): Promise<string[]> => {
    const reply = await cell.ask("drain", { key: "k" });
    return reply.flag("overflow") || reply.flag("too_many") ? ["everything"] : reply.all("dirty").sort();
  };

  test("names the folders in which something was made, changed, renamed or removed", options, async () => {
    const reply = await cell.ask("watch", { key: "k", path: root, skip: "node_modules", ...(kind === "inotify" ? { kind } : {}) });
    expect(reply.get("kind")).toBe(kind);
    expect(await drain()).toEqual([]);
    writeFileSync(join(root, "a/b/file"), "1");
    expect(await drain()).toEqual(["a/b"]);
    expect(await drain()).toEqual([]);
    appendFileSync(join(root, "a/b/file"), "2");
    writeFileSync(join(root, "top"), "1");
    expect(await drain()).toEqual([".", "a/b"]);
    chmodSync(join(root, "top"), 0o600);
    expect(await drain()).toEqual(["."]);
    renameSync(join(root, "top"), join(root, "a/moved"));
    expect(await drain()).toEqual([".", "a"]);
    linkSync(join(root, "a/moved"), join(root, "a/b/linked"));
    expect(await drain()).toContain("a/b");
    rmSync(join(root, "a/b/file"));
    expect(await drain()).toEqual(["a/b"]);
  });

  test("sees into folders that were just made, and what is written while a file stays open", options, async () => {
    mkdirSync(join(root, "n/o/p"), { recursive: true });
    writeFileSync(join(root, "n/o/p/file"), "1");
    expect(await drain()).toContain(".");
    const file = openSync(join(root, "n/o/p/file"), "a");
    writeSync(file, "more");
    expect(await drain()).toEqual(["n/o/p"]);
    closeSync(file);
    await drain();
  });

  test("a folder that was renamed is followed, or everything is named", options, async () => {
    renameSync(join(root, "n/o"), join(root, "moved"));
    const renamed = await drain();
    expect(kind === "fanotify" ? renamed : renamed.slice(0, 1)).toEqual(kind === "fanotify" ? [".", "n"] : ["everything"]);
    writeFileSync(join(root, "moved/p/file"), "2");
    expect(await drain()).toEqual(["moved/p"]);
    rmSync(join(root, "moved"), { recursive: true });
    expect(await drain()).toContain(".");
  });

  test("skipped folders and other projects do not count", options, async () => {
    writeFileSync(join(root, "node_modules/x/file"), "1");
    mkdirSync(join(cell.folder, "project-two"));
    writeFileSync(join(cell.folder, "project-two/file"), "1");
    expect(await drain()).toEqual([]);
  });

  test("a folder that comes from elsewhere is watched from then on, with all that is below it", options, async () => {
    const elsewhere = join(cell.folder, "elsewhere");
    mkdirSync(join(elsewhere, "deep"), { recursive: true });
    for (const text of ["1", "2"]) {
      writeFileSync(join(elsewhere, "deep/file"), text);
      expect(await drain()).toEqual([]);
    }
    renameSync(elsewhere, join(root, "came"));
    expect(await drain()).toContain(kind === "fanotify" ? "." : "everything");
    writeFileSync(join(root, "came/deep/file"), "3");
    expect(await drain()).toEqual(["came/deep"]);
    rmSync(join(root, "came"), { recursive: true });
    await drain();
  });

  test("a project that a new watch covers is seen, however often its folders were seen before", options, async () => {
    const other = join(cell.folder, "other");
    mkdirSync(join(other, "deep"), { recursive: true });
    writeFileSync(join(other, "deep/file"), "1");
    expect(await drain()).toEqual([]);
    await cell.ask("watch", { key: "other", path: other, ...(kind === "inotify" ? { kind } : {}) });
    writeFileSync(join(other, "deep/file"), "2");
    expect(await drain()).toEqual([]);
    expect((await cell.ask("drain", { key: "other" })).all("dirty")).toEqual(["deep"]);
    await cell.ask("unwatch", { key: "other" });
  });

  test("more folders than an answer holds are said to be too many", options, async () => {
    for (let index = 0; index < 4200; index++) mkdirSync(join(root, "many", String(index)), { recursive: true });
    await drain();
    for (let index = 0; index < 4200; index++) writeFileSync(join(root, "many", String(index), "file"), "1");
    expect(await drain()).toEqual(["everything"]);
    rmSync(join(root, "many"), { recursive: true });
    await drain();
    writeFileSync(join(root, "after"), "1");
    expect(await drain()).toEqual(["."]);
  });

  test("a project that is replaced as a whole is compared as a whole, and watched on", options, async () => {
    renameSync(root, `${root}-old`);
    expect(await drain()).toEqual(["everything"]);
    mkdirSync(join(root, "fresh"), { recursive: true });
    expect(await drain()).toEqual(["everything"]);
    writeFileSync(join(root, "fresh/file"), "1");
    expect(await drain()).toEqual(["fresh"]);
  });

  test("a second watch of the same name is refused, and an ended one is unknown", options, async () => {
    await expect(cell.ask("watch", { key: "k", path: root })).rejects.toMatchObject({ code: "exists" });
    await cell.ask("unwatch", { key: "k" });
    await expect(cell.ask("drain", { key: "k" })).rejects.toMatchObject({ code: "not-found" });
  });
});
