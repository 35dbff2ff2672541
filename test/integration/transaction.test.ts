/** A change in a project's real folder is there as a whole or not at all, whatever happens. */
import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, lstatSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { CellHost } from "../../src/host/cell-host.ts";
import type { FieldList, Fields } from "../../src/host/frames.ts";
import type { LateEdit } from "../../src/promotion/transaction.ts";
import { needs } from "../support/skip.ts";
import { CELL } from "../support/storage.ts";
import { everyKind, TransactionLab } from "../support/transactions.ts";

const BEFORE_COMMIT = ["promote.staged", "promote.journalled", "promote.half", "promote.applied", "promote.synced"];
const AFTER_COMMIT = ["promote.committed", "promote.cleaned"];
/** Files, folders that go and folders that come in `everyKind`. */
const EVERY_KIND_ENTRIES = 34;
const MTIME = 1_600_000_000_500_000_000n;

/** A cell host whose steps can be told to go wrong. */
class FaultyHost extends CellHost {
  readonly #more: Readonly<Record<string, FieldList>>;
  readonly #dieBefore: string | undefined;
  readonly #dieAfter: string | undefined;

  constructor(more: Readonly<Record<string, FieldList>>, die: { before?: string; after?: string } = {}) {
    super({ program: CELL });
    this.#more = more;
    this.#dieBefore = die.before;
    this.#dieAfter = die.after;
  }

  override async request(operation: string, fields: FieldList = []): Promise<Fields> {
    if (operation === this.#dieBefore) process.kill(this.pid ?? 0, "SIGKILL");
    const reply = await super.request(operation, [...(this.#more[operation] ?? []), ...fields]);
    if (operation === this.#dieAfter) process.kill(this.pid ?? 0, "SIGKILL");
    return reply;
  }
}

/** Its step ends right after a rename, and it ends itself before anything can be brought back. */
function dyingHost(entry: number): FaultyHost {
  return new FaultyHost({ "apply.carry": [["halt", String(entry)]] }, { before: "apply.back" });
}

function words(conflicts: readonly LateEdit[]): string[] {
  return conflicts.map(({ path, what }) => `${path.toString()} ${what}`).toSorted();
}

describe("a transaction", needs("linux"), () => {
  let lab: TransactionLab;
  beforeEach(() => {
    lab = new TransactionLab();
  });
  afterEach(() => lab.close());

  function expectHeld(after: Readonly<Record<string, string | null>>): void {
    for (const [name, held] of Object.entries(after)) expect(lab.holds(name), JSON.stringify(name)).toBe(held);
  }

  async function expectUnchanged(before: ReadonlyMap<string, string>, ...except: readonly string[]): Promise<void> {
    const rest = (seen: ReadonlyMap<string, string>): unknown => new Map([...seen].filter(([name]) => !except.includes(name)));
    expect(rest(lab.seen())).toEqual(rest(before));
    expect(await lab.leftovers()).toEqual([]);
  }

  describe("applies", () => {
    test("files, links, modes and folders of every kind, odd names too, and leaves nothing behind", async () => {
      const after = everyKind(lab);
      const before = lab.seen();
      expect(await lab.transactions.apply(lab.request())).toEqual({ conflicts: [] });
      expectHeld(after);
      expect(lab.reached).toEqual([...BEFORE_COMMIT, ...AFTER_COMMIT]);
      expect(await lab.leftovers()).toEqual([]);
      expect(existsSync(lab.path("gone"))).toBe(false);
      for (const name of ["untouched/file", "untouched/run"]) expect(lab.seen().get(name)).toBe(before.get(name));
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
      const restore = await lab.transactions.attributes("one");
      expect(restore.get("secret")).toEqual({ mode: 0o600, mtimeNs: MTIME });
      expect(await lab.transactions.apply({ ...lab.reversed("two"), restore })).toEqual({ conflicts: [] });
      expect(withoutInodes()).toEqual(before);
      await lab.transactions.forget("one");
      await expect(lab.transactions.attributes("one")).rejects.toThrow("ENOENT");
    });

    test("where .git is a file, with the staging folder beside the files", async () => {
      rmSync(lab.path(".git"), { recursive: true });
      writeFileSync(lab.path(".git"), "gitdir: elsewhere\n");
      const after = everyKind(lab);
      lab.at.set("promote.half", () => expect(lstatSync(lab.path(".vivarium-t1")).mode & 0o777).toBe(0o700));
      expect(await lab.transactions.apply(lab.request())).toEqual({ conflicts: [] });
      expectHeld(after);
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
      if (point === "promote.half") expect(lab.seen()).not.toEqual(before);
      expect(await lab.transactions.recover("t1")).toBe("before");
      await expectUnchanged(before);
      expect(await lab.transactions.recover("t1")).toBe("before");
      expect(await lab.transactions.apply(lab.request())).toEqual({ conflicts: [] });
      expectHeld(after);
    });

    test.each(AFTER_COMMIT)("at %s it is as after, after a recovery", async (point) => {
      const after = everyKind(lab);
      expect(lab.applyInChild(point)).toBe("SIGKILL");
      expect(await lab.transactions.pending()).toEqual(point === "promote.cleaned" ? [] : ["t1"]);
      expect(await lab.transactions.recover("t1")).toBe("after");
      expectHeld(after);
      expect(await lab.leftovers()).toEqual([]);
      expect(await lab.transactions.recover("t1")).toBe("after");
      expect((await lab.transactions.attributes("t1")).get("a.txt")).toEqual({ mode: 0o644, mtimeNs: MTIME });
    });

    test("together with the cell host after any single rename, it is as before", async () => {
      everyKind(lab);
      const before = lab.seen();
      for (let entry = 1; entry <= EVERY_KIND_ENTRIES; entry++) {
        await lab.restart(dyingHost(entry));
        const outcome = lab.transactions.apply(lab.request());
        await expect(outcome, `at entry ${entry}`).rejects.toThrow("can't be brought back yet");
        await lab.restart();
        expect(await lab.transactions.recover("t1")).toBe("before");
        await expectUnchanged(before);
      }
    });

    test("in a recovery, the next recovery goes on", async () => {
      everyKind(lab);
      const before = lab.seen();
      lab.applyInChild("promote.applied");
      await lab.restart(new FaultyHost({}, { after: "apply.back" }));
      await expect(lab.transactions.recover("t1")).rejects.toThrow("cell host");
      await lab.restart();
      expect(await lab.transactions.recover("t1")).toBe("before");
      await expectUnchanged(before);
    });

    test("alone, a step of the cell host brings everything back at once", async () => {
      everyKind(lab);
      const before = lab.seen();
      await lab.restart(new FaultyHost({ "apply.carry": [["halt", "30"]] }));
      await expect(lab.transactions.apply(lab.request())).rejects.toThrow("Nothing was applied");
      await expectUnchanged(before);
    });
  });

  describe("F-40: an edit of the user", () => {
    /** Each with what it makes of the file, and what the user's file holds then. */
    const EDITS: Record<string, [edit: (path: string) => void, held: string | null]> = {
      "written in place": [(path) => writeFileSync(path, "mine"), "mine"],
      "renamed over it": [
        (path) => {
          writeFileSync(`${path}.tmp`, "mine");
          renameSync(`${path}.tmp`, path);
        },
        "mine",
      ],
    };

    for (const [how, [edit, held]] of Object.entries(EDITS))
      for (const point of ["", "promote.staged", "promote.journalled", "promote.half", "promote.applied"])
        test(`${how} ${point === "" ? "before it" : `at ${point}`} wins, and nothing else is changed`, async () => {
          everyKind(lab);
          lab.change("z-last", "old", "new");
          const before = lab.seen();
          const act = (): void => edit(lab.path("z-last"));
          if (point === "") act();
          else lab.at.set(point, act);
          const { conflicts } = await lab.transactions.apply(lab.request());
          expect(words(conflicts)).toEqual(["z-last changed since"]);
          expect(lab.holds("z-last")).toBe(held);
          await expectUnchanged(before, "z-last");
        });

    test.each(["promote.staged", "promote.half"])("that deletes, creates and makes folders at %s wins too", async (point) => {
      everyKind(lab);
      lab.change("z-deleted", "old", "new");
      lab.at.set(point, () => {
        rmSync(lab.path("z-deleted"));
        writeFileSync(lab.path("z-created"), "mine");
      });
      const { conflicts } = await lab.transactions.apply(lab.request());
      expect(words(conflicts)).toEqual(["z-deleted is gone, or its folder is"]);
      expect(lab.holds("z-deleted")).toBeNull();
      expect(lab.holds("z-created")).toBe("mine");
      expect(lab.holds("a.txt")).toBe("one\n");
      expect(await lab.leftovers()).toEqual([]);
    });

    test("is told for all paths at once where it came before", async () => {
      lab.change("edited", "1", "2");
      lab.change("gone", "1", "2");
      lab.change("deleted", "1", null);
      lab.change("created", null, "2");
      lab.change("folder", "1", "2");
      lab.change("executable", "1", "2");
      lab.change("fine", "1", "2");
      writeFileSync(lab.path("edited"), "3");
      rmSync(lab.path("gone"));
      writeFileSync(lab.path("deleted"), "3");
      writeFileSync(lab.path("created"), "3");
      rmSync(lab.path("folder"));
      mkdirSync(lab.path("folder"));
      chmodSync(lab.path("executable"), 0o755);
      const before = lab.seen();
      const { conflicts } = await lab.transactions.apply(lab.request());
      expect(words(conflicts)).toEqual([
        "created is there already",
        "deleted changed since",
        "edited changed since",
        "executable changed since",
        "folder is a folder now",
        "gone is gone",
      ]);
      await expectUnchanged(before);
    });

    test("of a file that was put in place stays when the rest goes back, after a crash too", async () => {
      everyKind(lab);
      const before = lab.seen();
      expect(lab.applyInChild("promote.applied")).toBe("SIGKILL");
      writeFileSync(lab.path("a.txt"), "mine");
      writeFileSync(lab.path("new/tool"), "mine");
      writeFileSync(lab.path("new/other"), "mine");
      writeFileSync(lab.path("file-to-folder/other"), "mine");
      const late: LateEdit[] = [];
      expect(await lab.transactions.recover("t1", (edit) => late.push(edit))).toBe("before");
      expect(words(late)).toEqual([
        "a.txt was edited meanwhile; the edit stays",
        "file-to-folder was edited meanwhile; the edit stays",
        "new/tool was edited meanwhile; the edit stays",
      ]);
      for (const name of ["a.txt", "new/other", "file-to-folder/other"]) expect(lab.holds(name)).toBe("mine");
      expect(lab.holds("new/tool")).toBe("*mine");
      await expectUnchanged(before, "a.txt", "new", "new/tool", "new/other", "file-to-folder", "file-to-folder/other");
    });

    test("that a kill hits right after the exchange is back after the recovery", async () => {
      lab.change("a", "old", "new");
      await lab.restart(dyingHost(1));
      lab.at.set("promote.journalled", () => writeFileSync(lab.path("a"), "mine"));
      await expect(lab.transactions.apply(lab.request())).rejects.toThrow("can't be brought back yet");
      expect(lab.holds("a")).toBe("new");
      await lab.restart();
      expect(await lab.transactions.recover("t1")).toBe("before");
      expect(lab.holds("a")).toBe("mine");
    });

    test("through a descriptor that was open before is found before it would be lost", async () => {
      lab.change("a", "old", "new");
      lab.change("b", "old", null);
      const before = lab.seen();
      lab.at.set("promote.applied", () => writeFileSync(join(lab.path(".git/vivarium-t1"), "1"), "mine"));
      expect(words((await lab.transactions.apply(lab.request())).conflicts)).toEqual(["a changed since"]);
      expect(lab.holds("a")).toBe("mine");
      expect(lab.seen().get("b")).toBe(before.get("b"));
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
      await expectUnchanged(before, "z", "z/stays");
    });

    test("that may not be written brings everything back", needs("root"), async () => {
      everyKind(lab);
      lab.put("z/stays", "1");
      lab.change("z/file", "1", "2");
      const before = lab.seen();
      execFileSync("chattr", ["+i", lab.path("z/file")]);
      try {
        await expect(lab.transactions.apply(lab.request())).rejects.toMatchObject({ code: "denied" });
        await expectUnchanged(before);
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
        await expectUnchanged(before);
      } finally {
        execFileSync("umount", [lab.project]);
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
        await expectUnchanged(before);
      } finally {
        execFileSync("umount", [lab.project]);
      }
    });
  });

  describe("PM-12: a path", () => {
    test.each([
      "/etc/passwd",
      "../out",
      "a/../../out",
      "a//b",
      "./a",
      "a/.",
      "a/",
      ".git/hooks/pre-commit",
      ".GIT/config",
      "sub/.Git/config",
      ".gi\u200ct/config",
      "\ufeff.git/config",
      "git~1/config",
      "GIT~1",
      ".git./config",
      ".git /config",
      ".git::$INDEX_ALLOCATION/config",
      "a\\.git\\config",
    ])("PM-05: %j is refused, and nothing is changed", async (name) => {
      everyKind(lab);
      const before = lab.seen();
      lab.change(name, null, "evil");
      await expect(lab.transactions.apply(lab.request())).rejects.toThrow("list is damaged");
      await expectUnchanged(before);
    });

    test.each([".gitignore", ".github/x", "git", ".gitx", "git~12", "a.git", "..a", "a\\b", "sub/.gitmodules"])(
      "%j is allowed",
      async (name) => {
        lab.change(name, null, "fine");
        expect(await lab.transactions.apply(lab.request())).toEqual({ conflicts: [] });
        expect(lab.holds(name)).toBe("fine");
      },
    );

    test("PM-01: behind a link is refused, and what the link points to is not touched", async () => {
      const outside = join(lab.folder, "outside");
      mkdirSync(outside);
      writeFileSync(join(outside, "file"), "old");
      symlinkSync(outside, lab.path("out"));
      lab.put("inside/x", "old");
      symlinkSync("inside", lab.path("in"));
      // The same paths lead out for whoever follows links.
      writeFileSync(lab.path("out/proof"), "");
      expect(existsSync(join(outside, "proof"))).toBe(true);
      const before = lab.seen();
      const attempts: [string, string | null, string | null][] = [
        ["out/new", null, "new"],
        ["out/file", "old", "new"],
        ["out/file", "old", null],
        ["in/x", "old", "new"],
        ["in/deep/y", null, "new"],
      ];
      for (const [index, attempt] of attempts.entries()) {
        const other = lab.request(`t${index}`);
        lab.change(...attempt, true);
        const { conflicts } = await lab.transactions.apply({ ...other, changes: other.changes.slice(-1) });
        expect(words(conflicts)[0]).toMatch(/lies behind a link|is there already/);
      }
      await expectUnchanged(before);
      expect(existsSync(join(outside, "new"))).toBe(false);
    });

    test("that becomes a link in the middle is refused", async () => {
      const outside = join(lab.folder, "outside");
      mkdirSync(outside);
      lab.put("z/stays", "1");
      lab.change("first", "1", "2");
      lab.change("z/new", null, "2");
      lab.at.set("promote.journalled", () => {
        renameSync(lab.path("z"), lab.path("y"));
        symlinkSync(outside, lab.path("z"));
      });
      expect((await lab.transactions.apply(lab.request())).conflicts.length).toBe(1);
      expect(lab.holds("first")).toBe("1");
      expect(existsSync(join(outside, "new"))).toBe(false);
    });

    test("on another file system is refused", needs("root"), async () => {
      lab.put("disk/keep", "1");
      execFileSync("mount", ["-t", "tmpfs", "none", lab.path("disk")]);
      try {
        writeFileSync(lab.path("disk/file"), "old");
        const before = lab.seen();
        for (const [id, name, old, now] of [
          ["t1", "disk/file", "old", "new"],
          ["t2", "disk/file", "old", null],
          ["t3", "disk/new", null, "new"],
          ["t4", "disk/deep/new", null, "new"],
        ] as const) {
          lab.change(name, old, now, true);
          const request = lab.request(id);
          const { conflicts } = await lab.transactions.apply({ ...request, changes: request.changes.slice(-1) });
          expect(words(conflicts)[0], id).toContain("lies on another file system");
          await expectUnchanged(before);
        }
      } finally {
        execFileSync("umount", [lab.path("disk")]);
      }
    });

    test("of no file or link is refused", async () => {
      lab.change("sub", null, "x");
      const request = lab.request();
      const changes = request.changes.map((change) => ({ ...change, new: { mode: "160000", id: "0".repeat(40) } }));
      await expect(lab.transactions.apply({ ...request, changes })).rejects.toMatchObject({ code: "invalid_input" });
      expect(await lab.transactions.pending()).toEqual([]);
    });
  });
});
