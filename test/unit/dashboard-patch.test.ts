/** Patches of real git, as the review page takes them apart. */
import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { needs } from "../support/skip.ts";
import { filesOf, type FilePatch } from "../../web/src/parts/patch.ts";

describe("a patch in the review page", needs("git"), () => {
  let folder: string;
  let files: ReadonlyMap<string, FilePatch>;

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "viv-patch-"));
    const git = (...words: string[]): string => execFileSync("git", words, { cwd: folder, encoding: "utf8" });
    const write = (name: string, text: string | Uint8Array): void => writeFileSync(join(folder, name), text);
    git("init", "-q", ".");
    write("changed.txt", "one\ntwo\nthree\n");
    write("gone.txt", "gone\n");
    write("moved.txt", "a long enough text\nthat git knows again\nwhen it moves\n");
    write("run.sh", "echo\n");
    write("picture.bin", new Uint8Array([0, 1, 2, 3]));
    git("add", ".");
    git("-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "before");
    write("changed.txt", "one\n+++ b/elsewhere.txt\ndiff --git a/x b/x\n@@ -1 +1 @@\n");
    rmSync(join(folder, "gone.txt"));
    renameSync(join(folder, "moved.txt"), join(folder, "new place.txt"));
    chmodSync(join(folder, "run.sh"), 0o755);
    write("picture.bin", new Uint8Array([0, 9, 9, 9]));
    symlinkSync("/etc/passwd", join(folder, "link"));
    git("add", "-A");
    files = new Map(filesOf(git("diff", "--cached", "-M")).map((file) => [file.path, file]));
  });

  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test("has each file once, and content that looks like a patch stays content", () => {
    expect([...files.keys()].toSorted()).toEqual(["changed.txt", "gone.txt", "link", "new place.txt", "picture.bin", "run.sh"]);
    expect(files.get("changed.txt")).toMatchObject({ status: "changed", added: 3, removed: 2, notes: [] });
  });

  test("says renames, modes, links and binary content in words", () => {
    expect(files.get("gone.txt")).toMatchObject({ status: "deleted", removed: 1 });
    expect(files.get("new place.txt")).toMatchObject({ status: "renamed", from: "moved.txt", notes: ["It was moved.txt."] });
    expect(files.get("run.sh")?.notes).toEqual(["It was a plain file and is executable now."]);
    expect(files.get("picture.bin")).toMatchObject({ binary: true, notes: ["Its content is binary."] });
    expect(files.get("link")).toMatchObject({ status: "added", notes: ["It is a symbolic link."] });
  });
});
