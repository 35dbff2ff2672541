/** A change in a project's real folder is there as a whole or not at all, whatever happens. */
import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, linkSync, lstatSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { needs } from "../support/skip.ts";
import { dyingHost, everyKind, FaultyHost, TransactionLab, unmount, words } from "../support/transactions.ts";

const BEFORE_COMMIT = ["promote.staged", "promote.journalled", "promote.half", "promote.applied", "promote.synced"];
const AFTER_COMMIT = ["promote.committed", "promote.cleaned"];
/** Files, folders that go and folders that come in `everyKind`. */
const EVERY_KIND_ENTRIES = 34;
const MTIME = 1_600_000_000_500_000_000n;

describe("a transaction", needs("linux"), () => {
  let lab: TransactionLab;
  beforeEach(() => {
    lab = new TransactionLab("disk");
  });
  afterEach(() => lab.close());

  describe("applies", () => {
    test("files, links, modes and folders of every kind, odd names too, and leaves nothing behind", async () => {
      const after = everyKind(lab);
      const before = lab.seen();
      expect(await lab.transactions.apply(lab.request())).toEqual({ conflicts: [] });
      lab.expectHeld(after);
      expect(lab.reached).toEqual([...BEFORE_COMMIT, ...AFTER_COMMIT]);
      expect(await lab.leftovers()).toEqual([]);
      expect(existsSync(lab.path("gone"))).toBe(false);
      for (const name of ["untouched/file", "untouched/run"]) expect(lab.seen().get(name)).toBe(before.get(name));
    });

    test("and what was replaced is out of the project at once, and gone soon, also if the server ends meanwhile", async () => {
      for (let number = 0; number < 300; number++) lab.change(`many/${number}`, `old ${number}`, `new ${number}`);
      expect(await lab.transactions.apply(lab.request("one"))).toEqual({ conflicts: [] });
      expect(await lab.leftovers()).toEqual([]);
      const aside = join(lab.state, "one", "aside");
      await vi.waitFor(() => expect(existsSync(aside)).toBe(false));
      mkdirSync(aside);
      writeFileSync(join(aside, "0"), "old");
      await lab.transactions.clear();
      await vi.waitFor(() => expect(existsSync(aside)).toBe(false));
      expect(await lab.transactions.recover("one")).toBe("after");
      expect(readFileSync(lab.path("many/299"), "utf8")).toBe("new 299");
    });

    test("or tells of every late edit among hundreds of files, and writes none", async () => {
      for (let number = 0; number < 400; number++) lab.change(`many/${number}`, `old ${number}`, `new ${number}`);
      for (const number of [0, 199, 200, 399]) writeFileSync(lab.path(`many/${number}`), "edited");
      const { conflicts } = await lab.transactions.apply(lab.request("one"));
      expect(words(conflicts)).toEqual([0, 199, 200, 399].map((number) => `many/${number} changed since`));
      expect(readFileSync(lab.path("many/1"), "utf8")).toBe("old 1");
      expect(await lab.leftovers()).toEqual([]);
    });

    test("a change and its reverse with the modes and times of before, exactly", async () => {
      lab.put("kept", "kept");
      everyKind(lab);
      lab.change("private", "1", "2");
      lab.change("secret", "1", null);
      for (const name of ["private", "secret"]) chmodSync(lab.path(name), 0o600);
      const withoutInodes = (): string[] => [...lab.seen()].map(([name, what]) => `${name} ${what.replace(/ \d+ (?=\d{19} )/, " ")}`);
      const before = withoutInodes();
      await lab.transactions.apply(lab.request("one"));
      const restore = await lab.transactions.before("one");
      expect(restore.attributes.get("secret")).toEqual({ mode: 0o600, mtimeNs: MTIME });
      expect(await lab.transactions.apply({ ...lab.reversed("two"), restore })).toEqual({ conflicts: [] });
      expect(withoutInodes()).toEqual(before);
      await lab.transactions.forget("one");
      await expect(lab.transactions.before("one")).rejects.toThrow("ENOENT");
    });

    test("a change and its reverse of files with several names, which have them again", async () => {
      const inode = (name: string): bigint => lstatSync(lab.path(name), { bigint: true }).ino;
      // Both names change; one of two changes; both go; and one that is a copy by now, with and without the same content.
      for (const name of ["both", "one", "gone", "edited"]) lab.put(`${name}-a`, `old ${name}`);
      mkdirSync(lab.path("deep/er"), { recursive: true });
      for (const name of ["both", "gone", "edited"]) linkSync(lab.path(`${name}-a`), lab.path(`${name}-b`));
      linkSync(lab.path("one-a"), lab.path("deep/er/one-b"));
      lab.change("both-a", "old both", "new a", true);
      lab.change("both-b", "old both", "new b", true);
      lab.change("one-a", "old one", "new one", true);
      lab.change("gone-a", "old gone", null, true);
      lab.change("gone-b", "old gone", null, true);
      lab.change("edited-a", "old edited", "new edited", true);
      const [before, old] = [lab.seen(), inode("one-a")];
      expect(await lab.transactions.apply(lab.request("one"))).toEqual({ conflicts: [] });
      expect(inode("one-a")).not.toBe(old);
      writeFileSync(lab.path("edited-b"), "edited since");
      const reversed = { ...lab.reversed("two"), restore: await lab.transactions.before("one") };
      expect(await lab.transactions.apply(reversed)).toEqual({ conflicts: [] });
      expect([inode("one-a"), inode("deep/er/one-b")]).toEqual([old, old]);
      expect(inode("both-a")).toBe(inode("both-b"));
      expect(inode("gone-a")).toBe(inode("gone-b"));
      expect(inode("edited-a")).not.toBe(inode("edited-b"));
      expect(readFileSync(lab.path("edited-a"), "utf8")).toBe("old edited");
      // Mode, owner, time and content, whatever the inode.
      const told = (seen: ReadonlyMap<string, string>): string[] =>
        [...seen].filter(([name]) => name !== "edited-b").map(([name, what]) => `${name} ${what.replace(/(:\d+) \d+ /, "$1 ")}`);
      expect(told(lab.seen())).toEqual(told(before));
    });

    test("where .git is a file, with the staging folder beside the files", async () => {
      rmSync(lab.path(".git"), { recursive: true });
      writeFileSync(lab.path(".git"), "gitdir: elsewhere\n");
      const after = everyKind(lab);
      lab.at.set("promote.half", () => expect(lstatSync(lab.path(".vivarium-t1")).mode & 0o777).toBe(0o700));
      expect(await lab.transactions.apply(lab.request())).toEqual({ conflicts: [] });
      lab.expectHeld(after);
      expect(await lab.leftovers()).toEqual([]);
    });

    test("names that are no UTF-8", async () => {
      const request = lab.request();
      const path = Buffer.from([0x62, 0xff, 0x0a, 0x1f, 0x2f, 0xfe]);
      lab.change("x", null, "bytes");
      const changes = request.changes.map((change) => ({ ...change, path }));
      expect(await lab.transactions.apply({ ...request, changes })).toEqual({ conflicts: [] });
      expect(lstatSync(Buffer.concat([Buffer.from(`${lab.project}/`), path])).size).toBe(5);
    });

    test("PM-03: modes and owners that are reality's: only the executable bit travels, and no special bit stays", async () => {
      lab.change("group", "1", "*1");
      lab.change("closed", "*1", "1");
      lab.change("set", "*1", "*2");
      lab.change("new/file", null, "1");
      lab.change("new/tool", null, "*1");
      chmodSync(lab.path("group"), 0o660);
      chmodSync(lab.path("closed"), 0o700);
      chmodSync(lab.path("set"), 0o6755);
      chmodSync(lab.project, 0o775);
      await lab.transactions.apply(lab.request());
      const modes = ["group", "closed", "set", "new", "new/file", "new/tool"].map((name) => lstatSync(lab.path(name)).mode & 0o7777);
      expect(modes).toEqual([0o770, 0o600, 0o755, 0o775, 0o664, 0o775]);
    });

    test("PM-03: a closed project stays closed", async () => {
      chmodSync(lab.project, 0o700);
      lab.change("new/file", null, "1");
      lab.change("tool", null, "*1");
      await lab.transactions.apply(lab.request());
      expect(["new", "new/file", "tool"].map((name) => lstatSync(lab.path(name)).mode & 0o7777)).toEqual([0o700, 0o600, 0o700]);
    });
  });

  describe("killed", () => {
    test.each(BEFORE_COMMIT)("at %s it is as before after a recovery, and can be applied again", async (point) => {
      const after = everyKind(lab);
      const before = lab.seen();
      expect(lab.applyInChild(point)).toBe("SIGKILL");
      expect(await lab.transactions.pending()).toEqual(["t1"]);
      const changed = [...before].some(([name, what]) => lab.seen().get(name) !== what);
      expect(changed).toBe(!["promote.staged", "promote.journalled"].includes(point));
      expect(await lab.transactions.recover("t1")).toBe("before");
      await lab.expectUnchanged(before);
      expect(await lab.transactions.recover("t1")).toBe("before");
      expect(await lab.transactions.apply(lab.request())).toEqual({ conflicts: [] });
      lab.expectHeld(after);
    });

    test.each(AFTER_COMMIT)("at %s it is as after, after a recovery", async (point) => {
      const after = everyKind(lab);
      expect(lab.applyInChild(point)).toBe("SIGKILL");
      expect(await lab.transactions.pending()).toEqual(point === "promote.cleaned" ? [] : ["t1"]);
      expect(await lab.transactions.recover("t1")).toBe("after");
      lab.expectHeld(after);
      expect(await lab.leftovers()).toEqual([]);
      expect(await lab.transactions.recover("t1")).toBe("after");
      expect((await lab.transactions.before("t1")).attributes.get("a.txt")).toEqual({ mode: 0o644, mtimeNs: MTIME });
    });

    test("together with the cell host after any single rename, it is as before", async () => {
      await lab.close();
      lab = new TransactionLab("memory");
      everyKind(lab);
      const before = lab.seen();
      for (let entry = 1; entry <= EVERY_KIND_ENTRIES; entry++) {
        await lab.restart(dyingHost(entry));
        const outcome = lab.transactions.apply(lab.request());
        await expect(outcome, `at entry ${entry}`).rejects.toThrow("can't be brought back yet");
        await lab.restart();
        expect(await lab.transactions.recover("t1")).toBe("before");
        await lab.expectUnchanged(before);
      }
    });

    test("in a recovery, the next recovery goes on", async () => {
      everyKind(lab);
      const before = lab.seen();
      lab.applyInChild("promote.applied");
      await lab.restart(new FaultyHost({}, { after: "apply.back" }));
      await expect(lab.transactions.recover("t1")).rejects.toThrow("native helper");
      await lab.restart();
      expect(await lab.transactions.recover("t1")).toBe("before");
      await lab.expectUnchanged(before);
    });

    test("alone, a step of the cell host brings everything back at once", async () => {
      everyKind(lab);
      const before = lab.seen();
      await lab.restart(new FaultyHost({ "apply.carry": [["halt", "30"]] }));
      await expect(lab.transactions.apply(lab.request())).rejects.toThrow("Nothing was applied");
      await lab.expectUnchanged(before);
    });
  });

  describe("F-39: a folder", () => {
    test("removed while files go into it brings everything back", async () => {
      everyKind(lab);
      lab.put("z/stays", "1");
      lab.change("z/new", null, "2");
      const before = lab.seen();
      lab.at.set("promote.journalled", () => rmSync(lab.path("z"), { recursive: true }));
      const { conflicts } = await lab.transactions.apply(lab.request());
      expect(words(conflicts)).toEqual(["z is gone"]);
      await lab.expectUnchanged(before, "z", "z/stays");
    });

    test("that may not be written brings everything back", needs("root"), async () => {
      everyKind(lab);
      lab.put("z/stays", "1");
      lab.change("z/file", "1", "2");
      const before = lab.seen();
      execFileSync("chattr", ["+i", lab.path("z/file")]);
      try {
        await expect(lab.transactions.apply(lab.request())).rejects.toMatchObject({ code: "denied" });
        await lab.expectUnchanged(before);
      } finally {
        execFileSync("chattr", ["-i", lab.path("z/file")]);
      }
    });

    test("on a full disk brings everything back", needs("root"), async () => {
      execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m", "none", lab.project]);
      try {
        mkdirSync(lab.path(".git"));
        everyKind(lab);
        lab.change("large", "1", "x".repeat(2 * 1024 ** 2));
        const before = lab.seen();
        await expect(lab.transactions.apply(lab.request())).rejects.toMatchObject({ code: "disk_full" });
        await lab.expectUnchanged(before);
      } finally {
        unmount(lab.project);
      }
    });

    test("that becomes read-only in the middle comes back when it can be written again", needs("root"), async () => {
      execFileSync("mount", ["-t", "tmpfs", "none", lab.project]);
      try {
        mkdirSync(lab.path(".git"));
        everyKind(lab);
        const before = lab.seen();
        lab.at.set("promote.half", () => execFileSync("mount", ["-o", "remount,ro", lab.project]));
        await expect(lab.transactions.apply(lab.request())).rejects.toMatchObject({ code: "denied", message: /can't be brought back yet/ });
        expect(await lab.transactions.pending()).toEqual(["t1"]);
        execFileSync("mount", ["-o", "remount,rw", lab.project]);
        expect(await lab.transactions.recover("t1")).toBe("before");
        await lab.expectUnchanged(before);
      } finally {
        unmount(lab.project);
      }
    });
  });
});
