/** CLONE-6: today's reality brought into a sandbox. */
import { randomBytes } from "node:crypto";
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { RefreshReport } from "../../src/base/schema/files.ts";
import { TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const LINES = Array.from({ length: 20 }, (_, index) => `line ${index}\n`);
const FILES = {
  "untouched.txt": "1\n",
  "mine.txt": "1\n",
  "both.txt": LINES.join(""),
  "clash.txt": "1\n",
  "gone.txt": "1\n",
  "tool.sh": "#!/bin/sh\necho 1\n",
  "folder/one.txt": "1\n",
  "folder/two.txt": "1\n",
  "kept-here.txt": "1\n",
  "kept-there.txt": "1\n",
  "picture.bin": "1\0\n",
};

for (const storage of ["btrfs", "plain"] as const) {
  describe(`CLONE-6 a refresh on ${storage}`, storage === "btrfs" ? needs("root", "btrfs") : needs("root"), () => {
    let server: TestServer;
    let box: string;

    beforeAll(async () => {
      server = await TestServer.start({ config: { storage, spares: false }, files: FILES });
    });
    afterAll(async () => server?.remove());
    beforeEach(async () => {
      for (const [name, content] of Object.entries(FILES)) put(name, content);
      for (const name of ["new.txt", "link", "later.txt"]) rmSync(join(server.project, name), { force: true, recursive: true });
      chmodSync(join(server.project, "tool.sh"), 0o644);
      box = (await server.create()).id;
    });
    afterEach(async () => {
      await server.client.call("prune", { all: true });
    });

    const put = (name: string, content: string): void => {
      mkdirSync(join(server.project, name, ".."), { recursive: true });
      writeFileSync(join(server.project, name), content);
    };
    const inside = async (line: string): Promise<string> => {
      const result = await server.sh(box, line);
      expect(result.stderr).toBe("");
      return result.stdout;
    };
    const refresh = (): Promise<RefreshReport> => server.client.call("refreshSandbox", { sandbox: box });
    const differences = async (sandbox = box): Promise<string[]> =>
      (await server.client.call("diffSandbox", { sandbox })).entries.map(({ status, path }) => `${status} ${path}`);
    const conflictsOf = ({ conflicts }: RefreshReport): string[] => conflicts.map(({ kind, path }) => `${kind} ${path}`).toSorted();

    const folders = (...names: string[]): string => join(server.paths.home, storage === "btrfs" ? "pool" : "volumes", ...names);
    const listed = (name: string): string[] => readdirSync(folders(name)).toSorted();
    /** On plain storage a project's next base stands on the layers of its last one. */
    const layersOfTip = (): string[] => {
      const last = readFileSync(folders("tips", listed("tips")[0] ?? "", "base"), "utf8");
      return (JSON.parse(readFileSync(folders("bases", last, "layers.json"), "utf8")) as string[]).toSorted();
    };

    /** Reality moves on in every way that meets no change of the sandbox, and in one that merges. */
    const move = (): void => {
      put("untouched.txt", "2\n");
      put("both.txt", [...LINES, "outside\n"].join(""));
      put("new.txt", "new\n");
      unlinkSync(join(server.project, "gone.txt"));
      chmodSync(join(server.project, "tool.sh"), 0o755);
      rmSync(join(server.project, "folder"), { recursive: true });
      symlinkSync("new.txt", join(server.project, "link"));
    };

    test("brings in what moved and merges what both changed, while processes go on", async () => {
      await inside("echo inside > mine.txt; sed -i '1i inside' both.txt; echo own > own.txt");
      const running = await server.sh(box, "while :; do date +%N > /tmp/beat; done", { background: true });
      move();
      const report = await refresh();
      expect(report.conflicts).toEqual([]);
      expect(report.changes.map(({ status, path }) => `${status} ${path}`).toSorted()).toEqual([
        "added link",
        "added new.txt",
        "changed both.txt",
        "changed tool.sh",
        "changed untouched.txt",
        "deleted folder/one.txt",
        "deleted folder/two.txt",
        "deleted gone.txt",
      ]);
      const seen = await inside(
        "cat untouched.txt mine.txt own.txt new.txt; head -1 both.txt; tail -1 both.txt; readlink link; ls; stat -c %a tool.sh",
      );
      expect(seen).toBe(
        `2\ninside\nown\nnew\ninside\noutside\nnew.txt\n${["both.txt", "clash.txt", "kept-here.txt", "kept-there.txt", "link", "mine.txt", "new.txt", "own.txt", "picture.bin", "tool.sh", "untouched.txt"].join("\n")}\n755\n`,
      );
      const { commands } = await server.client.call("listCommands", { sandbox: box });
      expect(commands.map(({ id }) => id)).toEqual([running.id]);
      expect(await differences()).toEqual(["changed both.txt", "changed mine.txt", "added own.txt"]);
      expect(await server.client.call("sandboxStatus", { sandbox: box })).toMatchObject({ stale: false, changes: [], changedInside: 3 });
      const patch = (await buffer(await server.client.patch(box))).toString();
      expect(patch.match(/^diff --git .*$/gm)).toHaveLength(3);
      expect(patch).not.toContain("+outside");
      const full = await server.client.call("diffSandbox", { sandbox: box, stat: true });
      expect(full.entries.map(({ path, added, removed }) => `${path} ${added}/${removed}`)).toEqual([
        "both.txt 1/0",
        "mine.txt 1/1",
        "own.txt 1/0",
      ]);
      // Reality itself is as it was.
      expect(readFileSync(join(server.project, "mine.txt"), "utf8")).toBe("1\n");
      expect(readlinkSync(join(server.project, "link"))).toBe("new.txt");
      expect(lstatSync(join(server.project, "tool.sh")).mode & 0o777).toBe(0o755);
    });

    test("conflicts are marked inside, and what can't be marked lies beside", async () => {
      await inside("echo inside > clash.txt; printf 'a\\0b' > picture.bin; rm kept-there.txt; echo inside > kept-here.txt");
      put("clash.txt", "outside\n");
      put("picture.bin", "o\0o");
      put("kept-there.txt", "outside\n");
      unlinkSync(join(server.project, "kept-here.txt"));
      const report = await refresh();
      expect(conflictsOf(report)).toEqual([
        "binary picture.bin",
        "content clash.txt",
        "delete/edit kept-here.txt",
        "delete/edit kept-there.txt",
      ]);
      expect(report.conflicts.find(({ path }) => path === "picture.bin")?.reality).toBe("picture.bin.reality");
      expect(await inside("cat clash.txt")).toBe("<<<<<<< sandbox\ninside\n=======\noutside\n>>>>>>> reality\n");
      expect(
        await inside("cat picture.bin picture.bin.reality kept-here.txt kept-there.txt.reality; ls kept-there.txt 2>&1 || true"),
      ).toContain("a\0bo\0oinside\noutside\nls: cannot access");
      expect(await differences()).toEqual([
        "changed clash.txt",
        "added kept-here.txt",
        "deleted kept-there.txt",
        "added kept-there.txt.reality",
        "changed picture.bin",
        "added picture.bin.reality",
      ]);
    });

    test("what stands in the other's way is kept under both names, never written through a link", async () => {
      await inside("rm -r folder; ln -s /etc folder; rm mine.txt; mkdir mine.txt; echo inside > mine.txt/inner");
      put("folder/one.txt", "2\n");
      put("folder/three.txt", "3\n");
      put("mine.txt", "2\n");
      mkdirSync(join(server.project, "empty/deep"), { recursive: true });
      try {
        const report = await refresh();
        expect(report.conflicts.length).toBeGreaterThan(0);
        const seen = await inside(
          "readlink folder~sandbox; cat folder/three.txt folder/one.txt.reality mine.txt/inner; ls -d empty/deep; ls /etc | grep -c txt || true",
        );
        expect(seen).toBe("/etc\n3\n2\ninside\nempty/deep\n0\n");
      } finally {
        rmSync(join(server.project, "folder/three.txt"));
        rmSync(join(server.project, "empty"), { recursive: true });
      }
      await refresh();
      expect(await inside("ls -d empty folder/three.txt 2>/dev/null || true")).toBe("");
    });

    test("what is changed inside meanwhile stays, and reality's lies beside it", async () => {
      const count = 300;
      for (const index of Array.from({ length: count }).keys()) put(`many/${index}`, "1\n");
      box = (await server.create()).id;
      await server.sh(box, "while :; do for each in many/?; do echo inside > $each; done; done", { background: true });
      for (const index of Array.from({ length: count }).keys()) put(`many/${index}`, "2\n");
      const { conflicts } = await refresh();
      const settled = await inside("cat many/[0-9][0-9]* | sort | uniq -c | tr -s ' '");
      const told = new Set(conflicts.map(({ path }) => path));
      expect(Array.from({ length: 10 }, (_, index) => `many/${index}`).filter((path) => !told.has(path))).toEqual([]);
      expect(settled).toBe(` ${count - 10} 2\n`);
      rmSync(join(server.project, "many"), { recursive: true });
    });

    test("rolling back to the state before brings the old view back, and a fork of it has that too", async () => {
      await inside("echo inside > mine.txt");
      move();
      const { snapshot } = await refresh();
      await inside("echo more > own.txt");
      const after = await server.client.call("createSnapshot", { sandbox: box });
      const before = await server.client.call("forkSandbox", { sandbox: box, snapshot: snapshot ?? "" });
      const later = await server.client.call("forkSandbox", { sandbox: box });
      for (const [{ sandboxes }, own, stale] of [
        [before, ["changed mine.txt"], true],
        [later, ["changed mine.txt", "added own.txt"], false],
      ] as const) {
        const [fork] = sandboxes;
        expect(await differences(fork?.id)).toEqual(own);
        expect(await server.client.call("sandboxStatus", { sandbox: fork?.id ?? "" })).toMatchObject({ stale });
      }
      await server.client.call("rollback", { sandbox: box, snapshot: snapshot ?? "" });
      expect(await inside("cat untouched.txt gone.txt folder/one.txt")).toBe("1\n1\n1\n");
      expect(await differences()).toEqual(["changed mine.txt"]);
      expect(await server.client.call("sandboxStatus", { sandbox: box })).toMatchObject({ stale: true });
      await server.client.call("rollback", { sandbox: box, snapshot: after.id });
      expect(await differences()).toEqual(["changed mine.txt", "added own.txt"]);
      expect(await server.client.call("sandboxStatus", { sandbox: box })).toMatchObject({ stale: false });
      await server.client.call("rollback", { sandbox: box, snapshot: snapshot ?? "" });
      await refresh();
      expect(await inside("cat untouched.txt mine.txt")).toBe("2\ninside\n");
    });

    test("is repeated as often as reality moves, over a restart of the server and the end of other sandboxes", async () => {
      await inside("echo inside > mine.txt");
      for (const round of [2, 3, 4]) {
        put("untouched.txt", `${round}\n`);
        put("later.txt", `${round}\n`);
        await refresh();
        expect(await inside("cat untouched.txt later.txt")).toBe(`${round}\n${round}\n`);
        expect(await differences()).toEqual(["changed mine.txt"]);
        const other = await server.create();
        await server.client.call("removeSandbox", { sandbox: other.id });
        if (round === 3) {
          await server.down();
          await server.up();
        }
      }
      expect(await refresh()).toMatchObject({ snapshot: null, files: 0, conflicts: [] });
      // Of the snapshots on the way each knows what it was compared with.
      for (const { id } of (await server.client.call("listSnapshots", { sandbox: box })).snapshots) {
        await server.client.call("rollback", { sandbox: box, snapshot: id });
        expect(await differences()).toEqual(["changed mine.txt"]);
      }
      await server.client.call("stopSandbox", { sandbox: box });
      expect(await differences()).toEqual(["changed mine.txt"]);
    });

    test("a promotion after it takes the sandbox's own changes alone, and bases that no sandbox uses are gone", async () => {
      await inside("echo inside > mine.txt");
      move();
      await refresh();
      put("later.txt", "1\n");
      const plan = await server.client.call("planPromotion", { sandbox: box });
      expect(plan.changes.map(({ path }) => path)).toEqual(["mine.txt"]);
      expect([plan.conflicts, plan.movedPaths]).toEqual([[], 1]);
      await refresh();
      await server.client.call("prune", { all: true });
      await server.down();
      await server.up();
      await expect.poll(() => listed("bases")).toEqual(storage === "btrfs" ? [] : layersOfTip());
    });

    test("after a promotion the sandbox's later edits of the same lines are no conflict with what it promoted", async () => {
      await inside("echo first > mine.txt");
      const { state } = await server.client.call("promote", { sandbox: box });
      expect(state).toBe("applied");
      await inside("echo second > mine.txt");
      put("later.txt", "1\n");
      const report = await refresh();
      expect([report.conflicts, report.changes.map(({ path }) => path)]).toEqual([[], ["later.txt"]]);
      expect(await inside("cat mine.txt later.txt")).toBe("second\n1\n");
      put("mine.txt", "edited outside\n");
      expect((await refresh()).conflicts.map(({ path }) => path)).toEqual(["mine.txt"]);
      rmSync(join(server.project, "mine.txt"));
      rmSync(join(server.project, "later.txt"));
    });

    test("folders and files take each other's place, and names may be any bytes", async () => {
      put("untouched.txt", "x");
      rmSync(join(server.project, "untouched.txt"));
      put("untouched.txt/inner", "in a folder\n");
      rmSync(join(server.project, "folder"), { recursive: true });
      put("folder", "a file\n");
      const odd = Buffer.concat([Buffer.from(`${server.project}/new.txt`), Buffer.from([0xff, 0x0a])]);
      writeFileSync(odd, "odd\n");
      try {
        expect((await refresh()).conflicts).toEqual([]);
        expect(await inside("cat untouched.txt/inner folder new.txt?*")).toBe("in a folder\na file\nodd\n");
        expect(await differences()).toEqual([]);
      } finally {
        rmSync(odd);
        for (const name of ["untouched.txt", "folder"]) rmSync(join(server.project, name), { recursive: true });
      }
    });

    test("other folders shared live are refused in words, and nothing changes", async () => {
      put("vivarium.json", JSON.stringify({ capture: { live: ["folder"] } }));
      try {
        await expect(refresh()).rejects.toMatchObject({ code: "unsupported", message: expect.stringContaining("folder") as string });
        expect(await differences()).toEqual([]);
        expect((await server.client.call("listSnapshots", { sandbox: box })).snapshots).toEqual([]);
        // A sandbox that was made with it shared live can be refreshed, and what is live stays so.
        box = (await server.create()).id;
        put("untouched.txt", "2\n");
        put("folder/one.txt", "2\n");
        expect((await refresh()).changes).toEqual([{ path: "untouched.txt", status: "changed" }]);
        expect(await inside("cat untouched.txt folder/one.txt")).toBe("2\n2\n");
        rmSync(join(server.project, "folder"), { recursive: true });
        await expect(refresh()).rejects.toMatchObject({ code: "unsupported" });
      } finally {
        rmSync(join(server.project, "vivarium.json"));
      }
    });

    // Only storage that holds its quota refuses; elsewhere the watcher comes seconds later.
    test.for(storage === "btrfs" ? [storage] : [])("one that finds no room leaves the state before, and says why", async () => {
      box = (await server.create({ limits: { diskBytes: 24 * 1024 ** 2 } })).id;
      await inside("echo inside > mine.txt");
      move();
      writeFileSync(join(server.project, "later.txt"), randomBytes(48 * 1024 ** 2));
      await expect(refresh()).rejects.toMatchObject({ code: "disk_full" });
      expect(await inside("cat mine.txt untouched.txt folder/one.txt; ls new.txt later.txt link 2>/dev/null || true")).toBe(
        "inside\n1\n1\n",
      );
      expect(await differences()).toEqual(["changed mine.txt"]);
      rmSync(join(server.project, "later.txt"));
      expect((await refresh()).conflicts).toEqual([]);
      expect(await inside("cat mine.txt untouched.txt")).toBe("inside\n2\n");
    });

    const points = storage === "btrfs" ? ["refresh.snapshot", "refresh.begun", "refresh.applied", "refresh.done"] : ["refresh.applied"];
    for (const point of points) {
      test(`a server killed at ${point} leaves the state before or the one after`, async () => {
        await inside("echo inside > mine.txt; echo inside > clash.txt");
        move();
        put("clash.txt", "outside\n");
        await server.dieAt(point, refresh);
        const done = point === "refresh.done";
        expect(await inside("cat untouched.txt mine.txt; head -1 clash.txt; ls -d folder new.txt 2>/dev/null || true")).toBe(
          done ? "2\ninside\n<<<<<<< sandbox\nnew.txt\n" : "1\ninside\ninside\nfolder\n",
        );
        expect(await differences()).toEqual(["changed clash.txt", "changed mine.txt"]);
        expect(await server.client.call("sandboxStatus", { sandbox: box })).toMatchObject({ stale: !done });
        const report = await refresh();
        expect(conflictsOf(report)).toEqual(done ? [] : ["content clash.txt"]);
        expect(await inside("cat untouched.txt")).toBe("2\n");
      });
    }
  });
}
