/** Who edits a project while a change is applied to it loses nothing. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { LateEdit } from "../../src/work/promotion/transaction.ts";
import { needs } from "../support/skip.ts";
import { rounds } from "../support/soak.ts";
import { dyingHost, everyKind, FaultyHost, TransactionLab, words } from "../support/transactions.ts";

const RACES = rounds(40, 1000);

describe("a transaction", needs("linux"), () => {
  let lab: TransactionLab;
  beforeEach(() => {
    lab = new TransactionLab();
  });
  afterEach(() => lab.close());

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
          await lab.expectUnchanged(before, "z-last");
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
      await lab.expectUnchanged(before);
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
      await lab.expectUnchanged(before, "a.txt", "new", "new/tool", "new/other", "file-to-folder", "file-to-folder/other");
    });

    test("of a file that was put in place is named when the change fails for another reason", async () => {
      lab.change("a-created", null, "new");
      lab.change("z-last", "old", "new");
      // The second step does not come to its end.
      await lab.restart(new FaultyHost({ "apply.carry": [["halt", "2"]] }));
      lab.at.set("promote.half", () => writeFileSync(lab.path("a-created"), "mine"));
      const heard: LateEdit[] = [];
      await expect(lab.transactions.apply(lab.request(), (late) => heard.push(late))).rejects.toThrow("Nothing else was applied");
      expect(words(heard)).toEqual(["a-created was edited meanwhile; the edit stays"]);
      expect([lab.holds("a-created"), lab.holds("z-last")]).toEqual(["mine", "old"]);
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

    test.each(["in place", "by renames"])(
      "made many times %s while files are exchanged has the last word",
      async (how) => {
        lab.change("a", "old", "new");
        lab.change("b", "old", null);
        const user = spawn(process.execPath, [join(import.meta.dirname, "../support/transaction-user.ts"), lab.path("a"), how]);
        await once(user.stdout, "data");
        const found = { conflicts: 0, applied: 0 };
        try {
          for (let round = 0; round < RACES; round++) {
            lab.put("a", "old");
            lab.put("b", "old");
            const last = once(user.stdout, "data");
            const point = ["promote.journalled", "promote.half", "promote.applied"][round % 3] ?? "";
            lab.at.clear();
            lab.at.set(point, () => user.stdin.write("\n"));
            const { conflicts } = await lab.transactions.apply(lab.request(`t${round}`));
            const written = String((await last)[0]);
            expect(lab.holds("a"), `in round ${round}`).toBe(written);
            expect(lab.holds("b")).toBe(conflicts.length > 0 ? "old" : null);
            found[conflicts.length > 0 ? "conflicts" : "applied"] += 1;
          }
        } finally {
          user.kill();
        }
        expect(found.conflicts).toBeGreaterThan(0);
      },
      30_000 + RACES * 500,
    );

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
});
