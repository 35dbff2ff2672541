/** Files of a change become those of the project's owner, with the rights that its folder gives; ordinary users apply changes too. */
import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, copyFileSync, lstatSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { compile } from "../support/attacks.ts";
import { startCell } from "../support/cell.ts";
import { needs } from "../support/skip.ts";
import { CELL } from "../support/storage.ts";
import { everyKind, TransactionLab } from "../support/transactions.ts";

const OWNER = 12_345;
const GROUP = 23_456;
const NOBODY = 65_534;

describe("a transaction of root", needs("linux", "root"), () => {
  let lab: TransactionLab;
  beforeEach(() => {
    lab = new TransactionLab("disk");
  });
  afterEach(() => lab.close());

  function owners(...names: readonly string[]): string[] {
    return names.map((name) => lstatSync(lab.path(name))).map(({ uid, gid }) => `${uid}:${gid}`);
  }

  test("gives new files and folders to the owner of the project, and leaves changed ones to theirs", async () => {
    everyKind(lab);
    lab.give(OWNER, GROUP);
    chownSync(lab.path("a.txt"), NOBODY, GROUP);
    expect(await lab.transactions.apply(lab.request())).toEqual({ conflicts: [] });
    expect(owners("new", "new/deep", "new/deep/file", "new/link", "file-to-folder/inside", "folder-to-link", "link", "was-link")).toEqual(
      Array(8).fill(`${OWNER}:${GROUP}`),
    );
    expect(owners("a.txt", "src/main.js")).toEqual([`${NOBODY}:${GROUP}`, `${OWNER}:${GROUP}`]);
  });

  test("hands on the group of a setgid folder", async () => {
    mkdirSync(lab.path("shared"));
    chownSync(lab.path("shared"), 0, GROUP);
    chmodSync(lab.path("shared"), 0o2775);
    lab.change("shared/deep/file", null, "1");
    await lab.transactions.apply(lab.request());
    expect(owners("shared/deep", "shared/deep/file")).toEqual([`0:${GROUP}`, `0:${GROUP}`]);
    expect(lstatSync(lab.path("shared/deep")).mode & 0o7777).toBe(0o2755);
    expect(lstatSync(lab.path("shared/deep/file")).mode & 0o7777).toBe(0o644);
  });

  test("PM-03: keeps attributes of the user, drops capabilities", needs("compiler"), async () => {
    compile(lab.folder, "attributes");
    lab.change("file", "1", "2");
    const attributes = (...set: readonly string[]): string[] =>
      execFileSync(join(lab.folder, "attributes"), [lab.path("file"), ...set], { encoding: "utf8" })
        .trim()
        .split("\n")
        .toSorted();
    expect(attributes("user.note=kept", "cap")).toEqual(["security.capability", "user.note"]);
    await lab.transactions.apply(lab.request());
    expect(lab.holds("file")).toBe("2");
    expect(attributes()).toEqual(["user.note"]);
  });
});

describe("a large transaction", needs("linux"), () => {
  // In memory: on a disk, what others write there would be measured.
  test("takes 5,000 files in a moment", async ({ annotate }) => {
    const lab = new TransactionLab("memory");
    try {
      const text = (word: string, index: number): string => `${word} ${index}\n`.repeat(100);
      for (let index = 0; index < 5000; index++) {
        const old = index % 5 === 0 ? null : text("old", index);
        lab.change(`d${index % 100}/s${index % 10}/f${index}`, old, index % 5 === 1 ? null : text("new", index));
      }
      const begin = performance.now();
      expect(await lab.transactions.apply(lab.request())).toEqual({ conflicts: [] });
      const taken = performance.now() - begin;
      await annotate(`5,000 files in ${Math.round(taken)} ms`);
      expect(taken).toBeLessThan(15_000);
      expect(await lab.leftovers()).toEqual([]);
    } finally {
      await lab.close();
    }
  });
});

describe("a transaction on btrfs", needs("root", "btrfs"), () => {
  test("applies and goes back as on any other file system", async () => {
    const cell = startCell();
    const lab = new TransactionLab("disk", cell.pool());
    try {
      const after = everyKind(lab);
      const before = lab.seen();
      lab.applyInChild("promote.applied");
      expect(await lab.transactions.recover("t1")).toBe("before");
      await lab.expectUnchanged(before);
      expect(await lab.transactions.apply(lab.request())).toEqual({ conflicts: [] });
      lab.expectHeld(after);
    } finally {
      await lab.close();
      await cell.remove();
    }
  });
});

describe("a transaction of an ordinary user", needs("linux", "open-checkout"), () => {
  test("applies, and comes back after a kill", () => {
    const folder = realpathSync(mkdtempSync(join(tmpdir(), "viv-user-")));
    try {
      const identity = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
      if (identity.uid !== undefined) chownSync(folder, NOBODY, NOBODY);
      const cell = join(folder, "cell");
      copyFileSync(CELL, cell);
      chmodSync(cell, 0o755);
      const seen: unknown = JSON.parse(
        execFileSync(process.execPath, [join(import.meta.dirname, "../support/transaction-as-user.ts")], {
          ...identity,
          cwd: folder,
          encoding: "utf8",
          env: { PATH: process.env["PATH"] ?? "", HOME: folder, VIV_CELL: cell },
        }),
      );
      expect(seen).toEqual({ recovered: "before", restored: true, conflicts: [], wrong: [], left: [] });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
