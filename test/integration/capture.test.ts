import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, chmodSync, existsSync, linkSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, realpathSync, rmSync, statSync, symlinkSync, truncateSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Base, CaptureRequest } from "../../src/capture/capture.ts";
import { ProjectCapture } from "../../src/capture/projects.ts";
import { newId } from "../../src/schema/ids.ts";
import { LIMITS } from "../../src/schema/limits.ts";
import { needs } from "../support/skip.ts";
import { makeStorage, type Storage } from "../support/storage.ts";

const CANARY = `canary-${newId("project")}`;

function git(folder: string, ...args: string[]): string {
  const identity = ["-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main"];
  return execFileSync("git", [...identity, ...args], { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], env: { PATH: process.env["PATH"] ?? "", GIT_CONFIG_GLOBAL: "/dev/null" } });
}

const suite = (storageName: "btrfs" | "plain"): void => {
  let storage: Storage;
  let capture: ProjectCapture;
  const folders: string[] = [];
  beforeAll(async () => {
    storage = await makeStorage(storageName);
    capture = new ProjectCapture(storage.host, storage.volumes);
  });
  afterAll(async () => {
    await capture?.close();
    await storage?.remove();
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  });

  const folder = (): string => {
    const made = realpathSync(mkdtempSync(join(tmpdir(), "viv-project-")));
    folders.push(made);
    return made;
  };
  const requestFor = (path: string, more: Partial<CaptureRequest> = {}): CaptureRequest => ({
    project: newId("project"), path, exclude: [], live: [], limitBytes: LIMITS.maxCapturedBytes, data: [], ...more,
  });
  /** The base as a sandbox would see it: a mounted overlay on plain storage, the folder itself on btrfs. */
  const view = async <T>(base: Base, slot: number, look: (root: string) => T): Promise<T> => {
    const id = newId("sandbox");
    const { folder: volume, layers } = await storage.volumes.create(id, { base: base.id, project: base.project }, 64 * 1024 ** 2);
    try {
      if (layers.length === 0) return look(join(volume, "roots", String(slot)));
      const at = join(volume, "roots", String(slot), "seen");
      mkdirSync(at);
      const lower = layers.map((layer) => join(layer, "roots", String(slot))).join(":");
      execFileSync("mount", ["-t", "overlay", "overlay", "-o", `lowerdir=${lower},upperdir=${volume}/roots/${slot}/upper,workdir=${volume}/roots/${slot}/work,index=off`, at]);
      try {
        return look(at);
      } finally {
        execFileSync("umount", [at]);
      }
    } finally {
      await storage.volumes.remove("volume", id);
    }
  };

  test("CLONE-1 uncommitted, untracked and ignored files, links, modes, times, empty folders and odd names are in the base", async () => {
    const project = folder();
    git(project, "init", "-q");
    writeFileSync(join(project, ".gitignore"), "ignored\nsmall/\n");
    writeFileSync(join(project, "committed"), "1");
    git(project, "add", ".");
    git(project, "commit", "-qm", "first");
    writeFileSync(join(project, "committed"), "changed");
    writeFileSync(join(project, "untracked"), "2");
    writeFileSync(join(project, "ignored"), "3");
    mkdirSync(join(project, "small/deep"), { recursive: true });
    writeFileSync(join(project, "small/deep/file"), "4");
    mkdirSync(join(project, "empty"), { mode: 0o750 });
    chmodSync(join(project, "empty"), 0o750);
    symlinkSync("/etc/passwd", join(project, "link"));
    linkSync(join(project, "untracked"), join(project, "hard"));
    writeFileSync(Buffer.concat([Buffer.from(`${project}/n`), Buffer.from([0xff, 0xfe])]), "5");
    writeFileSync(join(project, "n".repeat(255)), "6");
    truncateSync(join(project, "ignored"), 50 * 1024 ** 2);
    utimesSync(join(project, "untracked"), 1_000_000, 1_000_000);
    chmodSync(join(project, "untracked"), 0o751);
    const base = await capture.base(requestFor(project));
    await view(base, 0, (root) => {
      expect(readFileSync(join(root, "committed"), "utf8")).toBe("changed");
      expect(readFileSync(join(root, "small/deep/file"), "utf8")).toBe("4");
      expect(statSync(join(root, "empty")).mode & 0o777).toBe(0o750);
      expect(readlinkSync(join(root, "link"))).toBe("/etc/passwd");
      expect(statSync(join(root, "hard")).ino).toBe(statSync(join(root, "untracked")).ino);
      expect(statSync(join(root, "untracked")).mtimeMs).toBe(1_000_000_000);
      expect(statSync(join(root, "untracked")).mode & 0o777).toBe(0o751);
      expect(statSync(join(root, "ignored")).blocks).toBeLessThan(1000);
      expect(readdirSync(root, { encoding: "buffer" }).some((name) => name.includes(0xff))).toBe(true);
      expect(existsSync(join(root, "n".repeat(255)))).toBe(true);
      expect(git(root, "-c", "safe.directory=*", "status", "--porcelain").split("\n").filter(Boolean).sort()).toEqual(
        git(project, "status", "--porcelain").split("\n").filter(Boolean).sort(),
      );
    });
    expect(base.report.files).toBeGreaterThan(8);
  });

  test("CLONE-2 an unchanged project gives the same base, at the cost of one small request", async () => {
    const project = folder();
    for (let index = 0; index < 3000; index += 1) {
      if (index % 100 === 0) mkdirSync(join(project, `d${index / 100}`));
      writeFileSync(join(project, `d${Math.floor(index / 100)}/f${index}`), `${index}`);
    }
    const request = requestFor(project);
    const first = await capture.base(request);
    expect(await capture.base(request)).toBe(first);
    const times: number[] = [];
    for (let round = 0; round < 50; round += 1) {
      const start = performance.now();
      expect((await capture.base(request)).id).toBe(first.id);
      times.push(performance.now() - start);
    }
    expect(times.toSorted((one, other) => one - other)[25]).toBeLessThan(2);
    writeFileSync(join(project, "d3/f300"), "changed");
    rmSync(join(project, "d4/f400"));
    mkdirSync(join(project, "new/deep"), { recursive: true });
    writeFileSync(join(project, "new/deep/file"), "new");
    const second = await capture.base(request);
    expect(second.id).not.toBe(first.id);
    expect(second.report.changed).toBeLessThan(10);
    await view(second, 0, (root) => {
      expect(readFileSync(join(root, "d3/f300"), "utf8")).toBe("changed");
      expect(existsSync(join(root, "d4/f400"))).toBe(false);
      expect(readFileSync(join(root, "new/deep/file"), "utf8")).toBe("new");
      expect(readFileSync(join(root, "d5/f500"), "utf8")).toBe("500");
    });
    await view(first, 0, (root) => {
      expect(readFileSync(join(root, "d3/f300"), "utf8")).toBe("300");
      expect(existsSync(join(root, "new"))).toBe(false);
    });
  });

  test("a dozen changes in a row end in what reality is, and older bases stay what they were", async () => {
    const project = folder();
    writeFileSync(join(project, "stays"), "0");
    const request = requestFor(project);
    const bases: { base: Base; seen: Record<string, string> }[] = [];
    const content = (root: string): Record<string, string> =>
      Object.fromEntries(readdirSync(root, { encoding: "utf8", recursive: true }).sort().map((name) => [name, statSync(join(root, name)).isFile() ? readFileSync(join(root, name), "utf8") : "folder"]));
    for (let round = 0; round < 12; round += 1) {
      writeFileSync(join(project, `f${round % 5}`), `${round}`);
      if (round % 3 === 2) rmSync(join(project, `f${(round + 4) % 5}`), { force: true });
      rmSync(join(project, "flip"), { recursive: true, force: true });
      if (round % 3 === 1) writeFileSync(join(project, "flip"), "file");
      if (round === 0 || round % 3 === 2) {
        mkdirSync(join(project, "flip/in"), { recursive: true });
        writeFileSync(join(project, `flip/in/${round}`), "");
      }
      bases.push({ base: await capture.base(request), seen: content(project) });
    }
    for (const { base, seen } of bases) await view(base, 0, (root) => expect(content(root)).toEqual(seen));
  });

  test("a capture by a new server finds what changed while none ran", async () => {
    const project = folder();
    writeFileSync(join(project, "a"), "1");
    const request = requestFor(project);
    const first = await capture.base(request);
    const second = new ProjectCapture(storage.host, storage.volumes);
    await capture.close();
    writeFileSync(join(project, "a"), "22");
    writeFileSync(join(project, "b"), "new");
    const base = await second.base(request);
    expect(base.id).not.toBe(first.id);
    await view(base, 0, (root) => expect(readFileSync(join(root, "a"), "utf8") + readFileSync(join(root, "b"), "utf8")).toBe("22new"));
    await second.close();
  });

  test("CLONE-4 logins in git's settings, hooks and credentials stay outside", async () => {
    const project = folder();
    git(project, "init", "-q");
    git(project, "remote", "add", "origin", `https://user:${CANARY}@example.org/x.git`);
    git(project, "config", "http.https://example.org/.extraHeader", `Authorization: Basic ${CANARY}`);
    git(project, "config", "credential.helper", `!echo ${CANARY}`);
    git(project, "config", "core.fsmonitor", `/tmp/${CANARY}`);
    git(project, "config", "alias.pwn", `!${CANARY}`);
    git(project, "config", "branch.main.description", 'two "words"\nand a line');
    writeFileSync(join(project, ".git/hooks/post-checkout"), `#!/bin/sh\n# ${CANARY}\n`, { mode: 0o755 });
    writeFileSync(join(project, ".git/credentials"), `https://u:${CANARY}@example.org`);
    const request = requestFor(project);
    for (const round of [1, 2]) {
      const base = await capture.base(request);
      await view(base, 0, (root) => {
        const found = execFileSync("sh", ["-c", `grep -rl ${CANARY} "$1" || true`, "sh", root], { encoding: "utf8" });
        expect(found).toBe("");
        expect(git(root, "-c", "safe.directory=*", "config", "remote.origin.url").trim()).toBe("https://example.org/x.git");
        expect(git(root, "-c", "safe.directory=*", "config", "branch.main.description").trim()).toBe('two "words"\nand a line');
        expect(git(root, "-c", "safe.directory=*", "config", "core.checkStat").trim()).toBe("minimal");
        expect(existsSync(join(root, ".git/credentials"))).toBe(false);
        expect(readdirSync(join(root, ".git/hooks"))).toEqual([]);
      });
      if (round === 1) git(project, "config", "remote.origin.pushurl", `https://${CANARY}@example.org/y.git`);
    }
    expect(execFileSync("sh", ["-c", `grep -rl ${CANARY} .git | wc -l`], { cwd: project, encoding: "utf8" }).trim()).not.toBe("0");
  });

  test("large git-ignored folders are shared live, and decided anew when the ignore rules change", async () => {
    const project = folder();
    git(project, "init", "-q");
    writeFileSync(join(project, ".gitignore"), "node_modules/\n");
    mkdirSync(join(project, "node_modules/big"), { recursive: true });
    mkdirSync(join(project, "packages/a/node_modules"), { recursive: true });
    for (let index = 0; index <= LIMITS.liveFolderEntries; index += 1) writeFileSync(join(project, `node_modules/big/${index}`), "");
    writeFileSync(join(project, "packages/a/node_modules/small"), "");
    mkdirSync(join(project, "output"));
    writeFileSync(join(project, "output/blob"), "");
    truncateSync(join(project, "output/blob"), LIMITS.liveFolderBytes + 1);
    const request = requestFor(project);
    const base = await capture.base(request);
    expect(base.live.map(({ path, reason }) => ({ path, reason }))).toEqual([{ path: join(project, "node_modules"), reason: "ignored" }]);
    await view(base, 0, (root) => {
      expect(readdirSync(join(root, "node_modules"))).toEqual([]);
      expect(readdirSync(join(root, "packages/a/node_modules"))).toEqual(["small"]);
      expect(existsSync(join(root, "output/blob"))).toBe(true);
    });
    writeFileSync(join(project, "node_modules/big/another"), "");
    expect((await capture.base(request)).id).toBe(base.id);
    appendFileSync(join(project, ".gitignore"), "output/\n");
    const after = await capture.base(request);
    expect(after.live.map(({ path }) => path).sort()).toEqual([join(project, "node_modules"), join(project, "output")]);
    await view(after, 0, (root) => expect(readdirSync(join(root, "output"))).toEqual([]));
  });

  test("past the size limit the folder that is too large is shared live, and it is said", async () => {
    const project = folder();
    mkdirSync(join(project, "assets/video/raw"), { recursive: true });
    mkdirSync(join(project, "source"));
    for (let index = 0; index < 4; index += 1) writeFileSync(join(project, `assets/video/raw/${index}`), Buffer.alloc(4 * 1024 ** 2));
    writeFileSync(join(project, "source/main"), Buffer.alloc(1024 ** 2));
    const base = await capture.base(requestFor(project, { limitBytes: 2 * 1024 ** 2 }));
    expect(base.live.map(({ path, reason }) => ({ path, reason }))).toEqual([{ path: join(project, "assets/video/raw"), reason: "large" }]);
    expect(base.report.live).toHaveLength(1);
    await view(base, 0, (root) => expect(existsSync(join(root, "source/main"))).toBe(true));
  });

  test("50 GB of data is neither copied nor lost", async () => {
    const project = folder();
    mkdirSync(join(project, "data"));
    writeFileSync(join(project, "data/huge"), "");
    truncateSync(join(project, "data/huge"), 50 * 1024 ** 3);
    writeFileSync(join(project, "data/small"), "1");
    const started = performance.now();
    const base = await capture.base(requestFor(project, { limitBytes: 100 * 1024 ** 3 }));
    expect(performance.now() - started).toBeLessThan(5000);
    expect(base.readOnly).toEqual([join(project, "data/huge")]);
    const limited = await capture.base(requestFor(project));
    expect(limited.live.map(({ path }) => path)).toEqual([join(project, "data")]);
  });

  test("excluded folders and files are not in the base, and folders named live are shared", async () => {
    const project = folder();
    for (const name of ["private", "shared", "kept"]) {
      mkdirSync(join(project, name));
      writeFileSync(join(project, name, "file"), name);
    }
    writeFileSync(join(project, "secret.txt"), CANARY);
    const request = requestFor(project, { exclude: ["private", "./secret.txt"], live: ["shared"] });
    const base = await capture.base(request);
    expect(base.live.map(({ path }) => path)).toEqual([join(project, "shared")]);
    await view(base, 0, (root) => {
      expect(readdirSync(join(root, "private"))).toEqual([]);
      expect(readdirSync(join(root, "kept"))).toEqual(["file"]);
      expect(existsSync(join(root, "secret.txt"))).toBe(false);
    });
  });

  test("submodules, nested repositories and worktrees work in the clone", async () => {
    const outer = folder();
    const library = folder();
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
    const base = await capture.base(requestFor(outer));
    await view(base, 0, (root) => {
      expect(git(join(root, "sub"), "-c", "safe.directory=*", "log", "--format=%s").trim()).toBe("lib");
      expect(git(join(root, "sub"), "-c", "safe.directory=*", "status", "--porcelain")).toBe("");
      expect(git(join(root, "nested"), "-c", "safe.directory=*", "status", "--porcelain").trim()).toBe("?? file");
      expect(execFileSync("sh", ["-c", `grep -rl ${CANARY} "$1" || true`, "sh", root], { encoding: "utf8" })).toBe("");
    });
    git(outer, "remote", "add", "origin", `https://u:${CANARY}@example.org/o.git`);
    const tree = join(folder(), "tree");
    git(outer, "worktree", "add", "-q", tree);
    const worktree = await capture.base(requestFor(tree));
    expect(worktree.roots.map(({ path }) => path)).toEqual([tree, join(outer, ".git")]);
    await view(worktree, 1, (root) => {
      expect(existsSync(join(root, "HEAD"))).toBe(true);
      expect(existsSync(join(root, "worktrees/tree/HEAD"))).toBe(true);
      expect(readdirSync(join(root, "hooks"))).toEqual([]);
      expect(execFileSync("sh", ["-c", `grep -rl ${CANARY} "$1" || true`, "sh", root], { encoding: "utf8" })).toBe("");
    });
  });

  test("a .git file that points at a folder that is no repository opens nothing", async () => {
    const project = folder();
    writeFileSync(join(project, ".git"), "gitdir: /etc\n");
    const base = await capture.base(requestFor(project));
    expect(base.roots).toHaveLength(1);
    expect(base.report.notes.join()).toContain("/etc is not captured");
  });

  test("a project's .env is captured, and it is said", async () => {
    const project = folder();
    writeFileSync(join(project, ".env"), "A=1");
    writeFileSync(join(project, ".env.example"), "A=");
    const base = await capture.base(requestFor(project));
    expect(base.report.notes).toContain("captured: .env (may hold secrets)");
    expect(base.report.notes.join()).not.toContain("example");
    await view(base, 0, (root) => expect(readFileSync(join(root, ".env"), "utf8")).toBe("A=1"));
  });

  test("CLONE-6 staleness names what moved in reality, and a commit as one change", async () => {
    const project = folder();
    git(project, "init", "-q");
    for (const name of ["same", "edited", "removed"]) writeFileSync(join(project, name), name);
    git(project, "add", ".");
    git(project, "commit", "-qm", "one");
    const request = requestFor(project);
    const base = await capture.base(request);
    expect(await capture.staleness(base, request)).toMatchObject({ stale: false, changes: [], more: false });
    writeFileSync(join(project, "edited"), "other");
    rmSync(join(project, "removed"));
    writeFileSync(join(project, "added"), "new");
    git(project, "status");
    expect((await capture.staleness(base, request)).changes).toEqual([
      { path: "added", status: "added" },
      { path: "edited", status: "changed" },
      { path: "removed", status: "deleted" },
    ]);
    git(project, "commit", "-qam", "two");
    const later = await capture.staleness(base, request);
    expect(later.changes).toContainEqual({ path: ".git", status: "changed" });
    expect(later.ageMs).toBeGreaterThan(0);
    const fresh = await capture.base(request);
    expect((await capture.staleness(fresh, request)).stale).toBe(false);
  });

  test("files that change while they are captured are whole or named, and the next base has them right", async () => {
    const project = folder();
    for (let index = 0; index < 50; index += 1) writeFileSync(join(project, `f${index}`), "x".repeat(100_000));
    const writer = spawn("sh", ["-c", "while :; do for i in 1 2 3; do date +%N > f$i; done; done"], { cwd: project });
    const request = requestFor(project);
    const during = await capture.base(request);
    writer.kill("SIGKILL");
    await once(writer, "close");
    expect(during.report.files).toBe(50);
    const after = await capture.base(request);
    await view(after, 0, (root) => {
      for (const name of ["f1", "f2", "f3"]) expect(readFileSync(join(root, name))).toEqual(readFileSync(join(project, name)));
    });
  });

  test("data folders of services are roots of their own", async () => {
    const project = folder();
    const data = folder();
    writeFileSync(join(data, "table"), "rows");
    const request = requestFor(project, { data: [data, "/nonexistent/data"] });
    const base = await capture.base(request);
    expect(base.roots).toEqual([{ path: project, slot: 0 }, { path: data, slot: 1 }]);
    expect(base.report.notes.join()).toContain("/nonexistent/data does not exist");
    await view(base, 1, (root) => expect(readFileSync(join(root, "table"), "utf8")).toBe("rows"));
    writeFileSync(join(data, "table"), "more rows");
    const next = await capture.base(request);
    await view(next, 1, (root) => expect(readFileSync(join(root, "table"), "utf8")).toBe("more rows"));
  });

  test("a project on a file system of its own is captured, and what is mounted in it is said", async () => {
    const project = folder();
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=16m", "tmpfs", project]);
    try {
      writeFileSync(join(project, "file"), "1");
      mkdirSync(join(project, "mounted"));
      execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", join(project, "mounted")]);
      writeFileSync(join(project, "mounted/inside"), "1");
      const request = requestFor(project);
      const base = await capture.base(request);
      await view(base, 0, (root) => expect(readFileSync(join(root, "file"), "utf8")).toBe("1"));
      expect(base.report.notes.join()).toContain("mounted is another file system");
      writeFileSync(join(project, "file"), "2");
      await view(await capture.base(request), 0, (root) => expect(readFileSync(join(root, "file"), "utf8")).toBe("2"));
      await capture.close();
    } finally {
      execFileSync("umount", [join(project, "mounted")]);
      execFileSync("umount", [project]);
    }
  });

  test("a tip that was cut short is made anew", async () => {
    const project = folder();
    writeFileSync(join(project, "a"), "1");
    const request = requestFor(project);
    await capture.base(request);
    await capture.close();
    const tip = await storage.volumes.openTip(request.project, false);
    writeFileSync(`${tip.manifests}0.dirty`, "");
    mkdirSync(join(tip.folder, "roots/0"), { recursive: true });
    writeFileSync(join(tip.folder, "roots/0/stray"), "left by a crash");
    const base = await capture.base(request);
    await view(base, 0, (root) => expect(readdirSync(root)).toEqual(["a"]));
  });

  test("a capture that fails half-way is a full one the next time, and loses nothing", async () => {
    const project = folder();
    mkdirSync(join(project, "sub"));
    writeFileSync(join(project, "sub/a"), "1");
    const request = requestFor(project);
    await capture.base(request);
    writeFileSync(join(project, "sub/a"), "changed");
    const { freeze } = storage.volumes;
    storage.volumes.freeze = () => Promise.reject(new Error("killed here"));
    await expect(capture.base(request)).rejects.toThrow("killed here");
    storage.volumes.freeze = freeze;
    await view(await capture.base(request), 0, (root) => expect(readFileSync(join(root, "sub/a"), "utf8")).toBe("changed"));
  });

  test("a base nobody needs goes when the next one takes its place", async () => {
    const project = folder();
    writeFileSync(join(project, "a"), "1");
    const request = requestFor(project);
    const first = await capture.base(request);
    await capture.forget(first.id);
    expect((await capture.base(request)).id).toBe(first.id);
    await view(first, 0, (root) => expect(existsSync(join(root, "a"))).toBe(true));
    await capture.forget(first.id);
    writeFileSync(join(project, "a"), "2");
    await capture.base(request);
    if (storage.volumes.capabilities.roots === "direct") expect(existsSync(storage.volumes.manifests(first.id))).toBe(false);
  });

  test("a project that vanished is not found", async () => {
    const project = folder();
    const request = requestFor(project);
    await capture.base(request);
    rmSync(project, { recursive: true });
    expect(lstatSync(project, { throwIfNoEntry: false })).toBeUndefined();
    await expect(capture.base(request)).rejects.toMatchObject({ code: "project_not_found" });
  });

  test("a folder that took the project's place is what the next base holds", async () => {
    const parent = folder();
    mkdirSync(join(parent, "project"));
    mkdirSync(join(parent, "other"));
    writeFileSync(join(parent, "project/a"), "old");
    writeFileSync(join(parent, "other/a"), "new");
    const request = requestFor(join(parent, "project"));
    await capture.base(request);
    execFileSync("sh", ["-c", "mv project away && mv other project"], { cwd: parent });
    await view(await capture.base(request), 0, (root) => expect(readFileSync(join(root, "a"), "utf8")).toBe("new"));
  });
};

describe("capture on btrfs", needs("root", "btrfs", "git"), () => suite("btrfs"));
describe("capture on plain storage", needs("root", "git"), () => suite("plain"));
