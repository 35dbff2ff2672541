import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { findRoots } from "../../src/machine/capture/roots.ts";
import { git } from "../support/capture-lab.ts";
import { needs } from "../support/skip.ts";

describe("git folders outside the project", needs("git"), () => {
  let at: string;
  const elsewhere = async (project: string): Promise<string[]> => (await findRoots(project, [])).roots.slice(1).map(({ path }) => path);
  const repository = (name: string): string => {
    const folder = join(at, name);
    mkdirSync(folder);
    git(folder, "init", "-q");
    git(folder, "commit", "-q", "--allow-empty", "-m", "first");
    return folder;
  };

  beforeEach(() => {
    at = realpathSync(mkdtempSync(join(tmpdir(), "viv-elsewhere-")));
  });
  afterEach(() => rmSync(at, { recursive: true, force: true }));

  test("those of a worktree and of a submodule are captured, also by relative paths and through links", async () => {
    const main = repository("main");
    git(main, "worktree", "add", "-q", join(at, "tree"));
    expect(await elsewhere(join(at, "tree"))).toEqual([join(main, ".git")]);
    symlinkSync(at, `${at}-link`);
    try {
      writeFileSync(join(at, "tree/.git"), `gitdir: ${at}-link/main/.git/worktrees/tree\n`);
      writeFileSync(join(main, ".git/worktrees/tree/gitdir"), "../../../../tree/.git\n");
      expect(await elsewhere(join(at, "tree"))).toEqual([join(main, ".git")]);
    } finally {
      rmSync(`${at}-link`);
    }
    git(main, "submodule", "--quiet", "add", repository("library"), "lib/sub");
    expect(await elsewhere(join(main, "lib/sub"))).toEqual([join(main, ".git/modules/lib/sub")]);
  });

  test("HG-04 a .git file opens no other repository, nor another one's worktree or submodule", async () => {
    const other = repository("other");
    git(other, "worktree", "add", "-q", join(at, "tree"));
    git(other, "submodule", "--quiet", "add", repository("library"), "sub");
    const project = join(at, "project");
    mkdirSync(project);
    for (const folder of [".git", ".git/worktrees/tree", ".git/modules/sub"]) {
      writeFileSync(join(project, ".git"), `gitdir: ${join(other, folder)}\n`);
      const { roots, notes } = await findRoots(project, []);
      expect(roots, folder).toHaveLength(1);
      expect(notes.join(), folder).toContain("nothing in it names this project");
    }
  });

  test("a git folder made up in the project or beside it opens no other repository", async () => {
    const other = repository("other");
    const project = join(at, "project");
    mkdirSync(project);
    for (const made of [join(project, "fake"), join(at, "worktrees/fake")]) {
      mkdirSync(made, { recursive: true });
      writeFileSync(join(made, "HEAD"), "ref: refs/heads/main\n");
      writeFileSync(join(made, "gitdir"), `${join(project, ".git")}\n`);
      writeFileSync(join(made, "commondir"), `${join(other, ".git")}\n`);
      writeFileSync(join(made, "config"), `[core]\n\tworktree = ${project}\n`);
      writeFileSync(join(project, ".git"), `gitdir: ${made}\n`);
      expect(await elsewhere(project), made).toEqual([]);
    }
  });

  test("a folder that git keeps apart counts once its settings name the project", async () => {
    const project = join(at, "project");
    git(at, "init", "-q", `--separate-git-dir=${join(at, "apart.git")}`, project);
    expect(await elsewhere(project)).toEqual([]);
    const [remedy] = /git config --file \S+ core\.worktree [^`]+/.exec((await findRoots(project, [])).notes.join()) ?? [];
    execFileSync("sh", ["-c", remedy ?? "false"]);
    expect(await elsewhere(project)).toEqual([join(at, "apart.git")]);
  });
});
