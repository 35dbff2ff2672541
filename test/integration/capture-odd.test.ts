import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { CANARY, CaptureLab, filesWithCanary, git, requestFor } from "../support/capture-lab.ts";
import { needs } from "../support/skip.ts";

const suite = (storage: "btrfs" | "plain"): void => {
  let lab: CaptureLab;
  beforeAll(async () => {
    lab = await CaptureLab.open(storage);
  });
  afterAll(async () => lab?.close());

  test("submodules, nested repositories and worktrees work in the clone", async () => {
    const outer = lab.folder();
    const library = lab.folder();
    git(library, "init", "-q");
    writeFileSync(join(library, "lib"), "1");
    git(library, "add", ".");
    git(library, "commit", "-qm", "lib");
    git(outer, "init", "-q");
    git(outer, "submodule", "--quiet", "add", library, "sub");
    git(outer, "commit", "-qm", "with submodule");
    git(outer, "init", "-q", "nested");
    writeFileSync(join(outer, "nested/file"), "n");
    git(join(outer, "sub"), "remote", "set-url", "origin", `https://u:${CANARY}@example.org/l.git`);
    const base = await lab.capture.base(requestFor(outer));
    await lab.view(base, 0, (root) => {
      expect(git(join(root, "sub"), "log", "--format=%s").trim()).toBe("lib");
      expect(git(join(root, "sub"), "status", "--porcelain")).toBe("");
      expect(git(join(root, "nested"), "status", "--porcelain").trim()).toBe("?? file");
      expect(filesWithCanary(root)).toBe("");
    });
    git(outer, "remote", "add", "origin", `https://u:${CANARY}@example.org/o.git`);
    const tree = join(lab.folder(), "tree");
    git(outer, "worktree", "add", "-q", tree);
    const worktree = await lab.capture.base(requestFor(tree));
    expect(worktree.roots.map(({ path }) => path)).toEqual([tree, join(outer, ".git")]);
    await lab.view(worktree, 1, (root) => {
      expect(existsSync(join(root, "HEAD"))).toBe(true);
      expect(existsSync(join(root, "worktrees/tree/HEAD"))).toBe(true);
      expect(readdirSync(join(root, "hooks"))).toEqual([]);
      expect(filesWithCanary(root)).toBe("");
    });
  });

  test("a .git file that points at a folder that is no repository opens nothing", async () => {
    const project = lab.folder();
    writeFileSync(join(project, ".git"), "gitdir: /etc\n");
    const base = await lab.capture.base(requestFor(project));
    expect(base.roots).toHaveLength(1);
    expect(base.report.notes.join()).toContain("/etc is not captured");
  });

  test("HG-11 a pipe in place of git's ignore rules keeps no capture waiting, and it is said", async () => {
    const project = lab.folder();
    git(project, "init", "-q");
    writeFileSync(join(project, "file"), "1");
    execFileSync("mkfifo", [join(project, ".gitignore")]);
    const began = performance.now();
    const base = await lab.capture.base(requestFor(project));
    expect(performance.now() - began).toBeLessThan(15_000);
    expect(base.report.notes.join()).toContain(`${project}/.gitignore is no regular file`);
    await lab.view(base, 0, (root) => expect(readdirSync(root).toSorted()).toEqual([".git", "file"]));
  });

  test("a project's .env is captured, and it is said", async () => {
    const project = lab.folder();
    writeFileSync(join(project, ".env"), "A=1");
    writeFileSync(join(project, ".env.example"), "A=");
    const base = await lab.capture.base(requestFor(project));
    expect(base.report.notes).toContain("captured: .env (may hold secrets)");
    expect(base.report.notes.join()).not.toContain("example");
    await lab.view(base, 0, (root) => expect(readFileSync(join(root, ".env"), "utf8")).toBe("A=1"));
  });

  test("CLONE-6 staleness names what moved in reality, and a commit as one change", async () => {
    const project = lab.folder();
    git(project, "init", "-q");
    for (const name of ["same", "edited", "removed"]) writeFileSync(join(project, name), name);
    git(project, "add", ".");
    git(project, "commit", "-qm", "one");
    const request = requestFor(project);
    const base = await lab.capture.base(request);
    expect(await lab.capture.staleness(base, request)).toMatchObject({ stale: false, changes: [], more: false });
    writeFileSync(join(project, "edited"), "other");
    rmSync(join(project, "removed"));
    writeFileSync(join(project, "added"), "new");
    git(project, "status");
    expect((await lab.capture.staleness(base, request)).changes).toEqual([
      { path: "added", status: "added" },
      { path: "edited", status: "changed" },
      { path: "removed", status: "deleted" },
    ]);
    git(project, "commit", "-qam", "two");
    const later = await lab.capture.staleness(base, request);
    expect(later.changes).toContainEqual({ path: ".git", status: "changed" });
    expect(later.ageMs).toBeGreaterThan(0);
    const fresh = await lab.capture.base(request);
    expect((await lab.capture.staleness(fresh, request)).stale).toBe(false);
  });

  test("files that change while they are captured are whole or named, and the next base has them right", async () => {
    const project = lab.folder();
    for (let index = 0; index < 50; index += 1) writeFileSync(join(project, `f${index}`), "x".repeat(100_000));
    const writer = spawn("sh", ["-c", "while :; do for i in 1 2 3; do date +%N > f$i; done; done"], { cwd: project });
    const request = requestFor(project);
    const during = await lab.capture.base(request);
    writer.kill("SIGKILL");
    await once(writer, "close");
    expect(during.report.files).toBe(50);
    const after = await lab.capture.base(request);
    await lab.view(after, 0, (root) => {
      for (const name of ["f1", "f2", "f3"]) expect(readFileSync(join(root, name))).toEqual(readFileSync(join(project, name)));
    });
  });

  test("data folders of services are roots of their own", async () => {
    const project = lab.folder();
    const data = lab.folder();
    writeFileSync(join(data, "table"), "rows");
    const request = requestFor(project, { data: [{ path: data }, { path: "/nonexistent/data" }] });
    const base = await lab.capture.base(request);
    expect(base.roots).toEqual([
      { path: project, slot: 0 },
      { path: data, slot: 1 },
    ]);
    expect(base.report.notes.join()).toContain("/nonexistent/data does not exist");
    await lab.view(base, 1, (root) => expect(readFileSync(join(root, "table"), "utf8")).toBe("rows"));
    writeFileSync(join(data, "table"), "more rows");
    const next = await lab.capture.base(request);
    await lab.view(next, 1, (root) => expect(readFileSync(join(root, "table"), "utf8")).toBe("more rows"));
  });

  test("a project on a file system of its own is captured, and what is mounted in it is said", async () => {
    const project = lab.folder();
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=16m", "tmpfs", project]);
    try {
      writeFileSync(join(project, "file"), "1");
      mkdirSync(join(project, "mounted"));
      execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", join(project, "mounted")]);
      writeFileSync(join(project, "mounted/inside"), "1");
      const request = requestFor(project);
      const base = await lab.capture.base(request);
      await lab.view(base, 0, (root) => expect(readFileSync(join(root, "file"), "utf8")).toBe("1"));
      expect(base.report.notes.join()).toContain("mounted is another file system");
      writeFileSync(join(project, "file"), "2");
      await lab.view(await lab.capture.base(request), 0, (root) => expect(readFileSync(join(root, "file"), "utf8")).toBe("2"));
      await lab.capture.close();
    } finally {
      // A program that walks the machine at this moment may hold it.
      execFileSync("umount", ["--lazy", join(project, "mounted")]);
      execFileSync("umount", ["--lazy", project]);
    }
  });

  test("a tip that was cut short is made anew", async () => {
    const project = lab.folder();
    writeFileSync(join(project, "a"), "1");
    const request = requestFor(project);
    await lab.capture.base(request);
    await lab.capture.close();
    const tip = await lab.storage.bases.openTip(request.project, false);
    writeFileSync(`${tip.manifests}0.dirty`, "");
    mkdirSync(join(tip.folder, "roots/0"), { recursive: true });
    writeFileSync(join(tip.folder, "roots/0/stray"), "left by a crash");
    const base = await lab.capture.base(request);
    await lab.view(base, 0, (root) => expect(readdirSync(root)).toEqual(["a"]));
  });

  test("a capture that fails half-way is a full one the next time, and loses nothing", async () => {
    const project = lab.folder();
    mkdirSync(join(project, "sub"));
    writeFileSync(join(project, "sub/a"), "1");
    const request = requestFor(project);
    await lab.capture.base(request);
    writeFileSync(join(project, "sub/a"), "changed");
    const failing = vi.spyOn(lab.storage.bases, "freeze").mockRejectedValueOnce(new Error("killed here"));
    await expect(lab.capture.base(request)).rejects.toThrow("killed here");
    failing.mockRestore();
    await lab.view(await lab.capture.base(request), 0, (root) => expect(readFileSync(join(root, "sub/a"), "utf8")).toBe("changed"));
  });

  test("a base that no sandbox uses goes when the next one takes its place", async () => {
    const project = lab.folder();
    writeFileSync(join(project, "a"), "1");
    const request = requestFor(project);
    const first = await lab.capture.base(request);
    await lab.capture.forget(first.id);
    expect((await lab.capture.base(request)).id).toBe(first.id);
    await lab.view(first, 0, (root) => expect(existsSync(join(root, "a"))).toBe(true));
    await lab.capture.forget(first.id);
    writeFileSync(join(project, "a"), "2");
    await lab.capture.base(request);
    await lab.storage.health.reconcile({
      volumes: new Set(),
      snapshots: new Set(),
      bases: new Set(),
      projects: new Set([request.project]),
    });
    expect(existsSync(await lab.storage.bases.manifests(first.id))).toBe(lab.storage.capabilities.roots === "overlay");
  });

  test("a project that vanished is not found", async () => {
    const project = lab.folder();
    const request = requestFor(project);
    await lab.capture.base(request);
    rmSync(project, { recursive: true });
    expect(lstatSync(project, { throwIfNoEntry: false })).toBeUndefined();
    await expect(lab.capture.base(request)).rejects.toMatchObject({ code: "project_not_found" });
  });

  test("a folder that took the project's place is what the next base holds", async () => {
    const parent = lab.folder();
    mkdirSync(join(parent, "project"));
    mkdirSync(join(parent, "other"));
    writeFileSync(join(parent, "project/a"), "old");
    writeFileSync(join(parent, "other/a"), "new");
    const request = requestFor(join(parent, "project"));
    await lab.capture.base(request);
    execFileSync("sh", ["-c", "mv project away && mv other project"], { cwd: parent });
    await lab.view(await lab.capture.base(request), 0, (root) => expect(readFileSync(join(root, "a"), "utf8")).toBe("new"));
  });
};

describe("capture of odd projects on btrfs", needs("root", "btrfs", "git"), () => {
  suite("btrfs");
});
describe("capture of odd projects on plain storage", needs("root", "git"), () => {
  suite("plain");
});
