/** A change stays within the project's folder, and reaches only what it names. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { needs } from "../support/skip.ts";
import { everyKind, TransactionLab, unmount, words } from "../support/transactions.ts";

describe("a transaction", needs("linux"), () => {
  let lab: TransactionLab;
  beforeEach(() => {
    lab = new TransactionLab();
  });
  afterEach(() => lab.close());

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
      await lab.expectUnchanged(before);
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
      // A program that follows links is led out by the same paths.
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
      await lab.expectUnchanged(before);
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
          await lab.expectUnchanged(before);
        }
      } finally {
        unmount(lab.path("disk"));
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
