import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { CellHost } from "../../src/base/host/cell-host.ts";
import type { Fields } from "../../src/base/host/frames.ts";
import { LIMITS } from "../../src/base/schema/limits.ts";
import { type CellForTests, parts, startCell } from "../support/cell.ts";
import { needs } from "../support/skip.ts";
import { CELL } from "../support/storage.ts";

const MIB = 1024 ** 2;
const fill = (path: string, bytes: number): void => writeFileSync(path, Buffer.alloc(bytes, 7), { flush: true });

describe("cell host", needs("linux"), () => {
  let cell: CellForTests;
  beforeAll(() => {
    cell = startCell();
  });
  afterAll(async () => cell?.remove());

  test("answers many requests at once, each with its own answer", async () => {
    for (let index = 0; index < 40; index++) {
      mkdirSync(join(cell.folder, `many${index}`));
      for (let file = 0; file < index; file++) writeFileSync(join(cell.folder, `many${index}`, String(file)), "1");
    }
    const replies = await Promise.all(
      Array.from({ length: 40 }, (_, index) => cell.ask("measure", { path: join(cell.folder, `many${index}`) })),
    );
    expect(replies.map((reply) => reply.number("entries"))).toEqual(Array.from({ length: 40 }, (_, index) => index));
  });

  test("refuses an unknown operation and a missing field with a word and a sentence", async () => {
    await expect(cell.ask("nonsense")).rejects.toMatchObject({ code: "unsupported", message: "no operation is called nonsense" });
    await expect(cell.ask("remove")).rejects.toMatchObject({ code: "bad-request", message: "the field path is missing" });
  });

  test("a program that can't be started rejects every request and is reported", async () => {
    const onLost = vi.fn<(reason: Error) => void>();
    const host = new CellHost({ program: join(cell.folder, "absent"), onLost });
    await expect(host.request("measure")).rejects.toMatchObject({
      code: "cell_failed",
      message: expect.stringContaining("could not be started"),
    });
    await host.close();
    expect(onLost).toHaveBeenCalledOnce();
  });

  test("F-28: a helper that ends is started again: what only looks is asked again, the rest is told, and a stubborn one is given up", async () => {
    const place = mkdtempSync(join(cell.folder, "again-"));
    const program = join(place, "cell");
    copyFileSync(CELL, program);
    const [onLost, onRestart] = [vi.fn<(reason: Error) => void>(), vi.fn<(reason: Error) => void>()];
    const host = new CellHost({ program, onLost, onRestart });
    const told = (asked: Promise<Fields>): Promise<unknown> => asked.catch((reason: unknown) => reason);
    // Another program at its path is not what was started.
    rmSync(program);
    writeFileSync(program, "#!/bin/sh\nexit 3\n", { mode: 0o755 });
    const run = (): Promise<Fields> =>
      host.request(
        "run",
        Object.entries({
          program: "sleep",
          arg: "1000",
          cwd: "/",
          stdout: join(place, `out${onRestart.mock.calls.length}`),
          timeout: "9000",
          most: "9",
          env: `PATH=${process.env["PATH"]}`,
        }),
      );
    for (let kills = 1; kills <= LIMITS.helperRestarts; kills += 1) {
      await host.request("measure", [["path", place]]);
      const [looking, working] = [host.request("measure", [["path", "/usr"]]), told(run())];
      process.kill(host.pid ?? 0, "SIGKILL");
      expect((await looking).number("entries")).toBeGreaterThan(0);
      expect(await working).toMatchObject({
        code: "cell_failed",
        message: expect.stringContaining("SIGKILL"),
        remedy: expect.stringContaining("Try again"),
      });
      expect(onRestart).toHaveBeenCalledTimes(kills);
    }
    expect(onLost).not.toHaveBeenCalled();
    const looking = told(host.request("measure", [["path", "/usr"]]));
    process.kill(host.pid ?? 0, "SIGKILL");
    expect(await looking).toMatchObject({ code: "cell_failed", remedy: expect.stringContaining("viv doctor") });
    expect(onLost).toHaveBeenCalledOnce();
    await host.close();
  });

  test("adopts a process and reports its end; kills only the one with that start time", async () => {
    const child = spawn("sleep", ["1000"]);
    await once(child, "spawn");
    const start = Number(readFileSync(`/proc/${child.pid}/stat`, "utf8").split(") ")[1]?.split(" ")[19]);
    const pid = child.pid ?? 0;
    await cell.ask("adopt", { sandbox: "adopted", pid, start });
    expect((await cell.ask("kill", { pid, start: start + 1, signal: 9 })).flag("gone")).toBe(true);
    expect(child.exitCode).toBeNull();
    expect((await cell.ask("kill", { pid, start, signal: 9 })).flag("gone")).toBe(false);
    await once(child, "exit");
    await vi.waitUntil(() => cell.events.some((event) => event.name === "exited" && event.fields.get("sandbox") === "adopted"));
    await expect(cell.ask("adopt", { sandbox: "late", pid, start })).rejects.toMatchObject({ code: "not-found" });
  });

  test("measure stops at its bound and follows no link", async () => {
    const folder = join(cell.folder, "measured");
    mkdirSync(join(folder, "a"), { recursive: true });
    writeFileSync(join(folder, "a/b"), "12345");
    symlinkSync("/usr", join(folder, "usr"));
    const whole = await cell.ask("measure", { path: folder });
    expect([whole.number("entries"), whole.number("bytes"), whole.flag("complete")]).toEqual([3, 5, true]);
    expect((await cell.ask("measure", { path: folder, entries: 2 })).flag("complete")).toBe(false);
    const rows = (await cell.ask("measure", { path: [folder, join(folder, "absent")] })).all("row");
    expect(rows.map((row) => row.split("\x1f").slice(1))).toEqual([
      ["3", "5", "1"],
      ["0", "0", "0"],
    ]);
  });

  test("remove takes a very deep tree, follows no link, and is content with nothing", async () => {
    const folder = join(cell.folder, "deep");
    const kept = join(cell.folder, "kept");
    mkdirSync(kept);
    writeFileSync(join(kept, "file"), "1");
    mkdirSync(folder);
    symlinkSync(kept, join(folder, "link"));
    execFileSync("perl", ["-e", 'for (1..3000) { mkdir "d" x 50; chdir "d" x 50; open(F, ">f") }'], { cwd: folder });
    await cell.ask("remove", { path: folder });
    await cell.ask("remove", { path: folder });
    expect(existsSync(folder)).toBe(false);
    expect(readdirSync(kept)).toEqual(["file"]);
  });

  test("remove clears immutable flags, and stops at another mount", needs("root"), async () => {
    const folder = join(cell.folder, "stubborn");
    mkdirSync(join(folder, "in"), { recursive: true });
    writeFileSync(join(folder, "in/file"), "1");
    execFileSync("chattr", ["+i", join(folder, "in/file"), join(folder, "in")]);
    await cell.ask("remove", { path: folder });
    expect(existsSync(folder)).toBe(false);
    mkdirSync(join(folder, "mount"), { recursive: true });
    execFileSync("mount", ["-t", "tmpfs", "tmpfs", join(folder, "mount")]);
    writeFileSync(join(folder, "mount/file"), "1");
    await expect(cell.ask("remove", { path: folder })).rejects.toMatchObject({ step: "remove" });
    expect(readdirSync(join(folder, "mount"))).toEqual(["file"]);
    execFileSync("umount", ["--lazy", join(folder, "mount")]);
  });

  test("mask makes every kind of entry, or nothing at all", needs("root"), async () => {
    const path = join(cell.folder, "mask");
    const entry = [
      parts("dir", "/etc", "5", "6", "751"),
      parts("hide", "/etc/shadow"),
      parts("file", "/etc/npmrc", "7", "8", "640", "registry\n"),
      parts("link", "/etc/link", "../elsewhere"),
      parts("opaque", "/root", "0", "0", "700"),
      parts("through", "/root/.cargo", "0", "0", "755", "/root/.cargo"),
    ];
    await cell.ask("mask", { path, entry });
    const etc = statSync(join(path, "etc"));
    expect([etc.uid, etc.gid, etc.mode & 0o7777]).toEqual([5, 6, 0o751]);
    const shadow = lstatSync(join(path, "etc/shadow"));
    expect([shadow.isCharacterDevice(), shadow.rdev]).toEqual([true, 0]);
    const file = statSync(join(path, "etc/npmrc"));
    expect([readFileSync(join(path, "etc/npmrc"), "utf8"), file.uid, file.gid, file.mode & 0o777]).toEqual(["registry\n", 7, 8, 0o640]);
    expect(readlinkSync(join(path, "etc/link"))).toBe("../elsewhere");
    await expect(cell.ask("mask", { path, entry })).rejects.toMatchObject({ code: "exists" });
    const other = join(cell.folder, "mask2");
    for (const bad of [
      parts("dir", "/../out", "0", "0", "755"),
      parts("file", "/no/parent", "0", "0", "644", ""),
      parts("dir", "/x", "root", "0", "755"),
    ])
      await expect(cell.ask("mask", { path: other, entry: [...entry, bad] })).rejects.toMatchObject({ step: "entry" });
    expect(readdirSync(cell.folder).filter((name) => name.startsWith("mask2") || name.startsWith(".new"))).toEqual([]);
  });
});

describe("cell host on btrfs", needs("btrfs"), () => {
  let cell: CellForTests;
  let pool: string;
  beforeAll(async () => {
    cell = startCell();
    pool = cell.pool();
    await cell.ask("btrfs.quota", { path: pool });
  });
  afterAll(async () => cell?.remove());

  test("snapshots are independent, and read-only when asked", async () => {
    const [one, two, three] = [join(pool, "one"), join(pool, "two"), join(pool, "three")];
    await cell.ask("btrfs.create", { path: one });
    writeFileSync(join(one, "file"), "1");
    await cell.ask("btrfs.snapshot", { source: one, path: two });
    await cell.ask("btrfs.snapshot", { source: one, path: three, readonly: 1 });
    writeFileSync(join(two, "file"), "2");
    expect(readFileSync(join(one, "file"), "utf8")).toBe("1");
    expect(() => writeFileSync(join(three, "file"), "3")).toThrow("EROFS");
    await cell.ask("btrfs.readonly", { path: three, readonly: 0 });
    writeFileSync(join(three, "file"), "3");
    await expect(cell.ask("btrfs.create", { path: one })).rejects.toMatchObject({ code: "exists" });
  });

  test("a snapshot is taken by a thread, so that the helper goes on meanwhile", async () => {
    const host = new CellHost({ program: CELL });
    try {
      const threads = (): number => readdirSync(`/proc/${host.pid}/task`).length;
      await host.request("btrfs.create", [["path", join(pool, "threaded")]]);
      expect(threads()).toBe(1);
      await host.request("btrfs.snapshot", [
        ["source", join(pool, "threaded")],
        ["path", join(pool, "threaded-copy")],
      ]);
      expect(threads()).toBe(2);
    } finally {
      await host.close();
    }
  });

  test("the quota of a parent group holds over a chain of snapshots", async () => {
    await cell.ask("btrfs.qgroup", { path: pool, qgroup: "1/7", action: "create" });
    await cell.ask("btrfs.qgroup", { path: pool, qgroup: "1/7", action: "limit", bytes: 32 * MIB });
    await cell.ask("btrfs.create", { path: join(pool, "chain0"), qgroup: "1/7" });
    let written = 0;
    const writeOn = async (): Promise<void> => {
      for (; written < 12; written++) {
        const path = join(pool, `chain${written}`);
        fill(join(path, `file${written}`), 4 * MIB);
        await cell.ask("btrfs.snapshot", { source: path, path: join(pool, `chain${written + 1}`), qgroup: "1/7" });
      }
    };
    await expect(writeOn()).rejects.toMatchObject({ errno: -122 });
    expect(written).toBeGreaterThan(4);
    expect(written).toBeLessThan(8);
    const usage = await cell.ask("btrfs.usage", { path: pool, qgroup: "1/7" });
    expect([usage.number("limit"), (usage.number("bytes") ?? 0) > 16 * MIB]).toEqual([32 * MIB, true]);
    fill(join(pool, "unlimited"), 40 * MIB);
  });

  test("delete takes read-only, nested and immutable subvolumes, and nothing else", async () => {
    const path = join(pool, "doomed");
    await cell.ask("btrfs.create", { path });
    await cell.ask("btrfs.create", { path: join(path, "nested") });
    await cell.ask("btrfs.create", { path: join(path, "nested/deeper") });
    writeFileSync(join(path, "nested/deeper/file"), "1");
    execFileSync("chattr", ["+i", join(path, "nested/deeper/file"), join(path, "nested/deeper")]);
    await cell.ask("btrfs.readonly", { path: join(path, "nested"), readonly: 1 });
    await cell.ask("btrfs.readonly", { path, readonly: 1 });
    await cell.ask("btrfs.delete", { path });
    expect(existsSync(path)).toBe(false);
    await expect(cell.ask("btrfs.delete", { path })).rejects.toMatchObject({ code: "not-found" });
    mkdirSync(join(pool, "plain"));
    await expect(cell.ask("btrfs.delete", { path: join(pool, "plain") })).rejects.toMatchObject({ code: "bad-request" });
    expect(existsSync(join(pool, "plain"))).toBe(true);
  });

  test("says how much space there is", async () => {
    const reply = await cell.ask("btrfs.freespace", { path: pool });
    expect(reply.number("total")).toBe(1024 * MIB);
    expect(reply.number("free")).toBeLessThan(1024 * MIB);
  });

  test("a tip on btrfs follows a tree on another file system", async () => {
    const source = join(cell.folder, "source");
    mkdirSync(join(source, "a"), { recursive: true });
    fill(join(source, "a/file"), MIB);
    await cell.ask("btrfs.create", { path: join(pool, "tip") });
    const reply = await cell.ask("sync", { source, target: join(pool, "tip"), mode: "tip", manifest: join(cell.folder, "manifest") });
    expect([reply.number("files"), reply.number("bytes"), reply.number("generation")]).toEqual([1, MIB, 1]);
    expect(readFileSync(join(pool, "tip/a/file"))).toEqual(readFileSync(join(source, "a/file")));
  });
});
