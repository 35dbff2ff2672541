import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { git } from "../../src/machine/capture/git.ts";
import { git as make } from "../support/capture-lab.ts";
import { needs } from "../support/skip.ts";

const LIST = ["ls-files", "--others", "--ignored", "--exclude-standard", "--directory"];
/** Far below the time after which any git is ended. */
const SOON_MS = 15_000;

describe("git on a real project", needs("git"), () => {
  let project: string;
  const pipe = (path: string): void => {
    mkdirSync(dirname(join(project, path)), { recursive: true });
    rmSync(join(project, path), { force: true });
    execFileSync("mkfifo", [join(project, path)]);
  };

  beforeEach(() => {
    project = realpathSync(mkdtempSync(join(tmpdir(), "viv-reading-")));
    make(project, "init", "-q");
    mkdirSync(join(project, "out"));
    writeFileSync(join(project, "out/file"), "");
    writeFileSync(join(project, ".gitignore"), "out\n");
  });
  afterEach(() => rmSync(project, { recursive: true, force: true }));

  test("tells what is ignored", async () => {
    expect((await git(project, LIST)).stdout.toString()).toBe("out/\n");
  });

  test.each([".gitignore", ".git/info/exclude", ".git/HEAD", ".git/index", ".git/config", "deeper/.gitignore"])(
    "HG-11 waits for no writer of a pipe at %s",
    async (path) => {
      pipe(path);
      const began = performance.now();
      expect((await git(project, LIST)).code).not.toBe(0);
      expect(performance.now() - began).toBeLessThan(SOON_MS);
    },
  );
});
