import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { diffInFull, diffNames } from "../../src/machine/merge/diff.ts";
import { newId } from "../../src/base/schema/ids.ts";
import { takeOutOfCopy } from "../../src/machine/volumes/folder/copy-files-out.ts";
import { gatherCopies } from "../../src/machine/volumes/folder/gather.ts";
import { openFolder } from "../../src/machine/volumes/folder/storage.ts";
import { hear } from "../support/driver-lab.ts";
import { type Box, execRequest, makeUnwalled, type Unwalled } from "../support/unwalled.ts";

/** A walk is not repeated before many times its own duration have passed, which is long on a busy machine. */
const USAGE_WAIT = { timeout: 20_000 };
const FILES = { "a.txt": "one\ntwo\n", "src/main.js": "console.log(1);\n", "node_modules/dep/index.js": "module.exports = 1;\n" };

describe("DRV-4 a copy of a project", () => {
  test("a copy keeps links, modes and times, leaves special files out, and is the project's whole", async () => {
    const own = await makeUnwalled(FILES);
    try {
      symlinkSync("a.txt", join(own.project, "link"));
      symlinkSync("/nowhere", join(own.project, "dangling"));
      execFileSync("mkfifo", [join(own.project, "pipe")]);
      chmodSync(join(own.project, "src/main.js"), 0o555);
      utimesSync(join(own.project, "a.txt"), 1_000_000, 1_000_000.25);
      if (process.platform === "linux") execFileSync("sh", ["-c", "echo x > \"$(printf 'b\\377d')\""], { cwd: own.project });
      const made = await own.create();
      expect(readlinkSync(join(made.copy, "link"))).toBe("a.txt");
      expect(readlinkSync(join(made.copy, "dangling"))).toBe("/nowhere");
      expect(existsSync(join(made.copy, "pipe"))).toBe(false);
      expect(statSync(join(made.copy, "src/main.js")).mode & 0o777).toBe(0o555);
      expect(statSync(join(made.copy, "a.txt")).mtimeMs).toBeCloseTo(1_000_000_250, -1);
      expect(readdirSync(made.copy, { encoding: "latin1" }).length).toBe(readdirSync(own.project).length - 1);
      expect(made.base.report).toMatchObject({ files: process.platform === "linux" ? 4 : 3 });
      expect(made.base.report.notes.join("\n")).toContain("1 sockets, pipes or devices");
    } finally {
      await own.remove();
    }
  });

  test("a project of 5,000 files is copied whole", { timeout: 180_000 }, async () => {
    const own = await makeUnwalled(FILES);
    try {
      for (let folder = 0; folder < 100; folder += 1)
        for (let file = 0; file < 50; file += 1) own.put(`node_modules/p${folder}/f${file}.js`, "x".repeat(500));
      const made = await own.create();
      expect(made.base.report.files).toBe(5_003);
      expect(readdirSync(join(made.copy, "node_modules/p99"))).toHaveLength(50);
    } finally {
      await own.remove();
    }
  });
});

describe("volumes of unwalled sandboxes", () => {
  let own: Unwalled;
  beforeAll(async () => {
    own = await makeUnwalled(FILES);
  });
  afterAll(async () => own?.remove());
  const diff = async (of: Box, lines = false) => {
    const workplace = { gather: gatherCopies, temporary: own.home };
    const sides = await own.storage.comparison.sides({ volume: of.id }, of.base.id);
    const outer = async () => ({ prefix: "", above: [], excludes: Buffer.alloc(0) });
    const sorting = { takeOut: takeOutOfCopy, sides, outer, tracked: async () => new Set<string>(), include: [] };
    return (await (lines ? diffInFull(workplace, sorting) : diffNames(workplace, sides))).entries;
  };

  test("SNAP-2 rolling back brings back what the snapshot holds", async () => {
    const made = await own.create();
    writeFileSync(join(made.copy, "mine"), "1");
    const snapshot = newId("snapshot");
    await own.storage.snapshots.take(made.id, snapshot);
    writeFileSync(join(made.copy, "mine"), "2");
    rmSync(join(made.copy, "src"), { recursive: true });
    for (let times = 0; times < 2; times += 1) {
      await made.walls.stop(0);
      await own.storage.snapshots.restore(made.id, snapshot);
      const again = await own.launch(made.id, made.base, await own.storage.disks.paths(made.id));
      expect((await hear(await again.walls.commands.exec(execRequest(own.project, "cat mine src/main.js")))).stdout).toBe(
        "1console.log(1);\n",
      );
    }
  });

  test("a diff names what changed, with lines, and nothing else", async () => {
    const made = await own.create();
    expect(await diff(made)).toEqual([]);
    const script =
      "echo three >> a.txt; rm src/main.js; mkdir new; printf 'x\\ny\\n' > new/file; ln -s /etc/passwd new/link; touch node_modules/dep/index.js; mkdir -p .git; echo x > .git/HEAD; printf '\\0\\1' > blob; mkfifo fifo";
    expect((await hear(await made.walls.commands.exec(execRequest(own.project, script)))).exit.code).toBe(0);
    const none = { from: null, added: null, removed: null, leftOut: null };
    const names = [
      { path: "a.txt", status: "changed", type: "file", oldMode: "100644", newMode: "100644", ...none },
      { path: "blob", status: "added", type: "file", oldMode: null, newMode: "100644", ...none },
      { path: "new", status: "added", type: "dir", oldMode: null, newMode: "40000", ...none },
      { path: "new/file", status: "added", type: "file", oldMode: null, newMode: "100644", ...none },
      { path: "new/link", status: "added", type: "link", oldMode: null, newMode: "120000", ...none },
      { path: "src/main.js", status: "deleted", type: "file", oldMode: "100644", newMode: null, ...none },
    ];
    expect(await diff(made)).toEqual(names);
    const counts: Record<string, object> = {
      "a.txt": { added: 1, removed: 0 },
      "new/file": { added: 2, removed: 0 },
      "src/main.js": { added: 0, removed: 1 },
    };
    expect(await diff(made, true)).toEqual(names.map((entry) => ({ ...entry, ...counts[entry.path] })));
    // Git's working folder is removed in the background.
    await expect.poll(() => readdirSync(own.home).filter((name) => /^(diff|store)-/.test(name))).toEqual([]);
  });

  test("a diff finds a change that keeps size and time, also in a snapshot, and modes that matter", async () => {
    const made = await own.create();
    await hear(
      await made.walls.commands.exec(
        execRequest(
          own.project,
          "touch -r a.txt /tmp/$$; printf 'ONE\\nTWO\\n' > a.txt; touch -r /tmp/$$ a.txt; rm /tmp/$$; chmod +x src/main.js",
        ),
      ),
    );
    // A copy's time is kept to the millisecond.
    expect(Math.abs(statSync(join(made.copy, "a.txt")).mtimeMs - statSync(join(own.project, "a.txt")).mtimeMs)).toBeLessThan(2);
    expect((await diff(made)).map(({ path, status }) => `${status} ${path}`)).toEqual(["changed a.txt", "changed src/main.js"]);
    const snapshot = newId("snapshot");
    await own.storage.snapshots.take(made.id, snapshot);
    const { entries } = await diffNames(
      { gather: gatherCopies, temporary: own.home },
      await own.storage.comparison.sides({ snapshot }, made.base.id),
    );
    expect(entries.map(({ path }) => path)).toEqual(["a.txt", "src/main.js"]);
  });

  test("a diff follows no link that took a folder's place", async () => {
    const made = await own.create();
    await hear(await made.walls.commands.exec(execRequest(own.project, "rm -r src; ln -s /etc src")));
    expect((await diff(made, true)).map(({ path, status, type }) => `${status} ${type} ${path}`)).toEqual([
      "changed link src",
      "deleted file src/main.js",
    ]);
  });

  test("CLONE-5 a base is frozen, used again while nothing changed, and tells how far reality has moved", async () => {
    const made = await own.create();
    const second = await own.create();
    expect(second.base.id).toBe(made.base.id);
    expect(await own.capture.staleness(made.base, own.request)).toMatchObject({ stale: false, changes: [] });
    own.put("a.txt", "moved on\n");
    own.put("added/x", "x");
    expect(await diff(made)).toEqual([]);
    const stale = await own.capture.staleness(made.base, own.request);
    expect(stale).toMatchObject({ stale: true, more: false });
    expect(stale.changes).toEqual([
      { path: "a.txt", status: "changed" },
      { path: "added", status: "added" },
      { path: "added/x", status: "added" },
    ]);
    const third = await own.create();
    expect(third.base.id).not.toBe(made.base.id);
    expect(third.base.report.changed).toBe(2);
    expect(readFileSync(join(third.copy, "a.txt"), "utf8")).toBe("moved on\n");
  });

  test("what a sandbox wrote is charged to it, and what it got is not", async () => {
    const made = await own.create();
    expect(await own.storage.disks.usage(made.id)).toBe(0);
    writeFileSync(join(made.copy, "large"), Buffer.alloc(1024 ** 2, 1));
    await expect.poll(async () => own.storage.disks.usage(made.id), USAGE_WAIT).toBeGreaterThanOrEqual(1024 ** 2);
    await own.storage.snapshots.take(made.id, newId("snapshot"));
    await expect.poll(async () => own.storage.disks.usage(made.id), USAGE_WAIT).toBeGreaterThanOrEqual(2 * 1024 ** 2);
  });

  test("a project over the capture limit is refused and nothing of it stays", async () => {
    await expect(own.capture.base({ ...own.request, project: newId("project"), limitBytes: 10 })).rejects.toMatchObject({
      code: "invalid_input",
    });
    const reopened = await openFolder({ home: own.home });
    await reopened.close(true);
    expect(readdirSync(join(own.home, "folders/tips"))).toEqual([]);
  });

  test("removing leaves nothing, and what a crash left is found and removed", async () => {
    const fresh = await makeUnwalled(FILES);
    try {
      const made = await fresh.create();
      const snapshot = newId("snapshot");
      await fresh.storage.snapshots.take(made.id, snapshot);
      chmodSync(join(made.copy, "src"), 0o555);
      await hear(
        await made.walls.commands.exec(
          execRequest(fresh.project, "i=0; while [ $i -lt 600 ]; do mkdir deep-folder && cd -P deep-folder || exit; i=$((i+1)); done"),
        ),
      );
      const left = await fresh.create();
      await made.walls.stop(0);
      await fresh.driver.clear(made.id, "remove");
      await fresh.storage.snapshots.remove(snapshot);
      await fresh.storage.disks.remove(made.id);
      await fresh.storage.close(true);
      mkdirSync(join(fresh.home, "folders/volumes/.making-0123456789abcdef"));
      const later = await openFolder({ home: fresh.home });
      const none = { volumes: new Set<string>(), snapshots: new Set<string>(), bases: new Set<string>(), projects: new Set<string>() };
      expect(await later.health.reconcile({ ...none, volumes: new Set([left.id]), bases: new Set([left.base.id]) })).toEqual([
        "volume .making-0123456789abcdef",
      ]);
      expect(await later.health.reconcile(none)).toHaveLength(2);
      expect(await fresh.driver.reconcile(async () => new Set())).toHaveLength(1);
      await later.close(true);
      const files = execFileSync("find", [join(fresh.home, "folders"), "-mindepth", "2"], { encoding: "utf8" });
      expect(files).toBe("");
    } finally {
      await fresh.remove();
    }
  });
});
