import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Base } from "../../src/base/store/rows.ts";
import { ProjectCapture } from "../../src/machine/capture/projects.ts";
import { LIMITS } from "../../src/base/schema/limits.ts";
import { CANARY, CaptureLab, filesWithCanary, git, requestFor } from "../support/capture-lab.ts";
import { memoryFolder } from "../support/folders.ts";
import { needs } from "../support/skip.ts";
import { workMs } from "../support/work.ts";

const suite = (storage: "btrfs" | "plain"): void => {
  let lab: CaptureLab;
  beforeAll(async () => {
    lab = await CaptureLab.open(storage, memoryFolder());
  });
  afterAll(async () => lab?.close());

  test("CLONE-1 uncommitted, untracked and ignored files, links, modes, times, empty folders and odd names are in the base", async () => {
    const project = lab.folder();
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
    const base = await lab.capture.base(requestFor(project));
    await lab.view(base, 0, (root) => {
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
      expect(git(root, "status", "--porcelain").split("\n").filter(Boolean).sort()).toEqual(
        git(project, "status", "--porcelain").split("\n").filter(Boolean).sort(),
      );
    });
    expect(base.report.files).toBeGreaterThan(8);
  });

  test("CLONE-2 an unchanged project gives the same base, at the cost of one small request", async () => {
    const project = lab.folder();
    for (let index = 0; index < 3000; index += 1) {
      if (index % 100 === 0) mkdirSync(join(project, `d${index / 100}`));
      writeFileSync(join(project, `d${Math.floor(index / 100)}/f${index}`), `${index}`);
    }
    const request = requestFor(project);
    const first = await lab.capture.base(request);
    expect(await lab.capture.base(request)).toBe(first);
    // Of several, the least: a busy machine makes each piece of work cost more.
    const costs: number[] = [];
    for (let round = 0; round < 50; round += 1) {
      const started = workMs();
      expect((await lab.capture.base(request)).id).toBe(first.id);
      costs.push(workMs() - started);
    }
    expect(Math.min(...costs)).toBeLessThan(2);
    writeFileSync(join(project, "d3/f300"), "changed");
    rmSync(join(project, "d4/f400"));
    mkdirSync(join(project, "new/deep"), { recursive: true });
    writeFileSync(join(project, "new/deep/file"), "new");
    const second = await lab.capture.base(request);
    expect(second.id).not.toBe(first.id);
    expect(second.report.changed).toBeLessThan(10);
    await lab.view(second, 0, (root) => {
      expect(readFileSync(join(root, "d3/f300"), "utf8")).toBe("changed");
      expect(existsSync(join(root, "d4/f400"))).toBe(false);
      expect(readFileSync(join(root, "new/deep/file"), "utf8")).toBe("new");
      expect(readFileSync(join(root, "d5/f500"), "utf8")).toBe("500");
    });
    await lab.view(first, 0, (root) => {
      expect(readFileSync(join(root, "d3/f300"), "utf8")).toBe("300");
      expect(existsSync(join(root, "new"))).toBe(false);
    });
  });

  test("a dozen changes in a row end in what reality is, and older bases stay what they were", async () => {
    const project = lab.folder();
    writeFileSync(join(project, "stays"), "0");
    const request = requestFor(project);
    const bases: { base: Base; seen: Record<string, string> }[] = [];
    const content = (root: string): Record<string, string> =>
      Object.fromEntries(
        readdirSync(root, { encoding: "utf8", recursive: true })
          .sort()
          .map((name) => [name, statSync(join(root, name)).isFile() ? readFileSync(join(root, name), "utf8") : "folder"]),
      );
    for (let round = 0; round < 12; round += 1) {
      writeFileSync(join(project, `f${round % 5}`), `${round}`);
      if (round % 3 === 2) rmSync(join(project, `f${(round + 4) % 5}`), { force: true });
      rmSync(join(project, "flip"), { recursive: true, force: true });
      if (round % 3 === 1) writeFileSync(join(project, "flip"), "file");
      if (round === 0 || round % 3 === 2) {
        mkdirSync(join(project, "flip/in"), { recursive: true });
        writeFileSync(join(project, `flip/in/${round}`), "");
      }
      bases.push({ base: await lab.capture.base(request), seen: content(project) });
    }
    for (const { base, seen } of bases) await lab.view(base, 0, (root) => expect(content(root)).toEqual(seen));
  });

  test("a capture by a new server finds what changed while none ran", async () => {
    const project = lab.folder();
    writeFileSync(join(project, "a"), "1");
    const request = requestFor(project);
    const first = await lab.capture.base(request);
    const second = new ProjectCapture(lab.host, lab.storage);
    await lab.capture.close();
    writeFileSync(join(project, "a"), "22");
    writeFileSync(join(project, "b"), "new");
    const base = await second.base(request);
    expect(base.id).not.toBe(first.id);
    await lab.view(base, 0, (root) => expect(readFileSync(join(root, "a"), "utf8") + readFileSync(join(root, "b"), "utf8")).toBe("22new"));
    await second.close();
  });

  test("CLONE-4 logins in git's settings, hooks and credentials stay outside", async () => {
    const project = lab.folder();
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
      const base = await lab.capture.base(request);
      await lab.view(base, 0, (root) => {
        const found = filesWithCanary(root);
        expect(found).toBe("");
        expect(git(root, "config", "remote.origin.url").trim()).toBe("https://example.org/x.git");
        expect(git(root, "config", "branch.main.description").trim()).toBe('two "words"\nand a line');
        expect(git(root, "config", "core.checkStat").trim()).toBe("minimal");
        expect(existsSync(join(root, ".git/credentials"))).toBe(false);
        expect(readdirSync(join(root, ".git/hooks"))).toEqual([]);
      });
      if (round === 1) git(project, "config", "remote.origin.pushurl", `https://${CANARY}@example.org/y.git`);
    }
    expect(execFileSync("sh", ["-c", `grep -rl ${CANARY} .git | wc -l`], { cwd: project, encoding: "utf8" }).trim()).not.toBe("0");
  });

  test("large git-ignored folders are shared live, and decided anew when the ignore rules change", async () => {
    const project = lab.folder();
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
    const base = await lab.capture.base(request);
    expect(base.live.map(({ path, reason }) => ({ path, reason }))).toEqual([{ path: join(project, "node_modules"), reason: "ignored" }]);
    await lab.view(base, 0, (root) => {
      expect(readdirSync(join(root, "node_modules"))).toEqual([]);
      expect(readdirSync(join(root, "packages/a/node_modules"))).toEqual(["small"]);
      expect(existsSync(join(root, "output/blob"))).toBe(true);
    });
    writeFileSync(join(project, "node_modules/big/another"), "");
    expect((await lab.capture.base(request)).id).toBe(base.id);
    appendFileSync(join(project, ".gitignore"), "output/\n");
    const after = await lab.capture.base(request);
    expect(after.live.map(({ path }) => path).sort()).toEqual([join(project, "node_modules"), join(project, "output")]);
    await lab.view(after, 0, (root) => expect(readdirSync(join(root, "output"))).toEqual([]));
  });

  test("past the size limit the folder that is too large is shared live, and it is said", async () => {
    const project = lab.folder();
    mkdirSync(join(project, "assets/video/raw"), { recursive: true });
    mkdirSync(join(project, "source"));
    for (let index = 0; index < 4; index += 1) writeFileSync(join(project, `assets/video/raw/${index}`), Buffer.alloc(4 * 1024 ** 2));
    writeFileSync(join(project, "source/main"), Buffer.alloc(1024 ** 2));
    const base = await lab.capture.base(requestFor(project, { limitBytes: 2 * 1024 ** 2 }));
    expect(base.live.map(({ path, reason }) => ({ path, reason }))).toEqual([{ path: join(project, "assets/video/raw"), reason: "large" }]);
    expect(base.report.live).toHaveLength(1);
    await lab.view(base, 0, (root) => expect(existsSync(join(root, "source/main"))).toBe(true));
  });

  test("50 GB of data is neither copied nor lost", async () => {
    const project = lab.folder();
    mkdirSync(join(project, "data"));
    writeFileSync(join(project, "data/huge"), "");
    truncateSync(join(project, "data/huge"), 50 * 1024 ** 3);
    writeFileSync(join(project, "data/small"), "1");
    const base = await lab.capture.base(requestFor(project, { limitBytes: 100 * 1024 ** 3 }));
    expect(base.readOnly).toEqual([join(project, "data/huge")]);
    const limited = await lab.capture.base(requestFor(project));
    expect(limited.live.map(({ path }) => path)).toEqual([join(project, "data")]);
  });

  test("excluded folders and files are not in the base, and folders named live are shared", async () => {
    const project = lab.folder();
    for (const name of ["private", "shared", "kept"]) {
      mkdirSync(join(project, name));
      writeFileSync(join(project, name, "file"), name);
    }
    writeFileSync(join(project, "secret.txt"), CANARY);
    const outside = lab.folder();
    writeFileSync(join(outside, "kept.txt"), "not the project's");
    mkdirSync(join(outside, "folder"));
    symlinkSync(outside, join(project, "link"));
    const before = requestFor(project);
    await lab.capture.base(before);
    const exclude = ["private", "./secret.txt", "link/kept.txt", "../x"];
    const base = await lab.capture.base({ ...before, exclude, live: ["shared", "link/folder"] });
    expect(readFileSync(join(outside, "kept.txt"), "utf8")).toBe("not the project's");
    expect(base.live.map(({ path }) => path)).toEqual([join(project, "shared")]);
    await lab.view(base, 0, (root) => {
      expect(readdirSync(join(root, "private"))).toEqual([]);
      expect(readdirSync(join(root, "kept"))).toEqual(["file"]);
      expect(existsSync(join(root, "secret.txt"))).toBe(false);
    });
  });
};

describe("capture on btrfs", needs("root", "btrfs", "git"), () => {
  suite("btrfs");
});
describe("capture on plain storage", needs("root", "git"), () => {
  suite("plain");
});
