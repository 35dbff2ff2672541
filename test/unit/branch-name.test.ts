/** PROM-6: what branches are called, and which addresses are pushed to. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { branchName, requireBranchName } from "../../src/work/promotion/branch-name.ts";
import { commitMessage } from "../../src/work/promotion/commit-message.ts";
import { isRemoteName, repositoryOf, requireRemoteAddress } from "../../src/work/promotion/remote.ts";

describe("the name of a branch", () => {
  test.each([
    [{ message: "Parse empty input" }, "fix/parse-empty-input"],
    [{ message: "Parse empty input\n\nMore words", ticket: "T-12" }, "fix/T-12-parse-empty-input"],
    [{ kind: "feat", message: "Käse für Ümläute, it's done!", ticket: "#7" }, "feat/7-kase-fur-umlaute-its-done"],
    [{ message: "fix(parser)!: Parse `$(rm -rf /)`; ../../x" }, "fix/parse-rm-rf-x"],
    [{ kind: "chore", message: "\u0645\u0631\u062d\u0628\u0627" }, "chore/change"],
    [{ message: "" }, "fix/change"],
    [{ message: "word ".repeat(20) }, `fix/${"word-".repeat(10).slice(0, -1)}`],
    [{ message: "x".repeat(300) }, `fix/${"x".repeat(50)}`],
  ] as const)("PROM-6: %j is %s", async (words, name) => {
    expect(await branchName(words)).toBe(name);
  });

  test.each(["", "../x", "a b", "-x", "x..y", "x.lock/", "@{", "a~1", "x".repeat(41), "a\nb", "x."])(
    "PROM-6: the ticket %j is refused",
    async (ticket) => {
      await expect(branchName({ message: "words", ticket })).rejects.toMatchObject({ code: "invalid_input" });
    },
  );
});

const HOSTILE = [
  "--output=x",
  "-c",
  "-ccore.pager=x",
  "@{-1}",
  "x@{1}",
  "@",
  "a..b",
  "a\nb",
  "a b",
  "a~1",
  "a^",
  "a:b",
  "a?",
  "a*",
  "a[",
  "a\\b",
  "a.lock",
  "a/.b",
  "/a",
  "a/",
  "a//b",
  "a.",
  "HEAD",
  "refs/heads/x",
  "",
  "\u0007",
  "a\u202eb",
  "0123456789012345678901234567890123456789",
  "x".repeat(201),
];

describe("a hostile name of a branch", () => {
  test.each(HOSTILE)("HG-06: %j is refused", async (name) => {
    await expect(requireBranchName(name)).rejects.toMatchObject({ code: "invalid_input" });
  });

  test("HG-06: git's plumbing alone takes such a name", () => {
    const folder = mkdtempSync(join(tmpdir(), "viv-branch-"));
    const git = (...args: string[]): string => execFileSync("git", ["-C", folder, ...args], { encoding: "utf8" });
    try {
      git("init", "-q");
      const tree = execFileSync("git", ["-C", folder, "mktree"], { input: "", encoding: "utf8" }).trim();
      const commit = git("-c", "user.name=a", "-c", "user.email=a@b", "commit-tree", "-m", "x", tree).trim();
      git("update-ref", "refs/heads/--output=x", commit);
      expect(git("for-each-ref", "--format=%(refname)").trim()).toBe("refs/heads/--output=x");
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  test.each(["fix/T-12-slug", "main", "feature/größer", "a#1"])("%s is a name", async (name) => {
    await expect(requireBranchName(name)).resolves.toBeUndefined();
  });
});

describe("the address of a remote", () => {
  test.each([
    "ext::sh -c 'touch x'",
    "fd::17",
    "::x",
    "transport::address",
    "-u",
    "--upload-pack=x",
    "git://host/x",
    "ftp://host/x",
    "ssh://-oProxyCommand=x/y",
    "ssh://%2doProxyCommand=x/y",
    "-oProxyCommand=x:y",
    "javascript:alert(1)//\n",
    "a\r",
    "",
  ])("HG-08: %j is refused", (address) => {
    expect(() => requireRemoteAddress(address)).toThrow(expect.objectContaining({ code: "invalid_input" }));
  });

  test.each(["https://host/o/r.git", "ssh://git@host:22/o/r", "git@host:o/r.git", "file:///srv/r", "/srv/r.git", "../r.git", "./a:b"])(
    "%s is one",
    (address) => {
      expect(() => requireRemoteAddress(address)).not.toThrow();
    },
  );

  test.each([
    ["https://github.com/o/r.git", "github.com o r"],
    ["https://user:token@GitHub.com/o/r", "github.com o r"],
    ["git@github.com:o/r.git", "github.com o r"],
    ["ssh://git@git.example:2222/o/r.x.git/", "git.example o r.x"],
    ["https://github.com/o/../r", undefined],
    ["https://host/a/b/c", undefined],
    ["https://host/o/..", undefined],
    ["file:///o/r", undefined],
    ["/o/r", undefined],
    ["../o/r", undefined],
  ])("PROM-6: %s means %s", (address, meaning) => {
    const found = repositoryOf(address);
    expect(found === undefined ? undefined : `${found.host} ${found.owner} ${found.name}`).toBe(meaning);
  });

  test("the name of a remote is a word", () => {
    expect(["origin", "my-fork.2"].every(isRemoteName)).toBe(true);
    expect(["-x", "a/b", "ext::x", "", "a b", "."].some(isRemoteName)).toBe(false);
  });
});

describe("the message of a commit", () => {
  test("PROM-6: it has a subject, a body, what changed, the checks and the co-author", () => {
    const text = commitMessage({
      message: "Parse it\r\n\r\nBecause.\t\u0007\u202e\n",
      stat: ["- a (+1 -0)"],
      checks: [
        { name: "npm test\nx", passed: true },
        { name: "lint", passed: false },
      ],
      coAuthor: "Agent <agent@example.com>\nSigned-off-by: x",
    });
    expect(text).toBe(
      "Parse it\n\nBecause.\n\nChanged:\n- a (+1 -0)\n\nChecks:\n- npm test x: passed\n- lint: failed\n\nCo-authored-by: Agent <agent@example.com> Signed-off-by: x\n",
    );
  });
});
