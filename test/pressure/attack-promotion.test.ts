/** PM and HG: what a hostile sandbox tries on its way into a real project. Controls show that the same content would do harm. */
import { execFileSync } from "node:child_process";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { OutputOf } from "../../src/base/schema/contracts.ts";
import { TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

describe("a hostile change", needs("root", "btrfs"), () => {
  let server: TestServer;
  let outside: string;
  const path = (name: string): string => join(server.project, name);
  const git = (...args: string[]): string =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@a", ...args], { cwd: server.project, encoding: "utf8", stdio: "pipe" });
  const changed = async (line: string): Promise<string> => {
    const { id } = await server.create();
    const { end, stderr } = await server.sh(id, line);
    expect(`${end?.exitCode} ${stderr}`).toBe("0 ");
    return id;
  };
  const promote = (sandbox: string): Promise<OutputOf<"promote">> => server.client.call("promote", { sandbox, allowRisky: true });
  const risks = (plan: OutputOf<"planPromotion">): string[] => plan.risks.map((risk) => `${risk.kind} ${risk.path}`).toSorted();

  beforeAll(async () => {
    server = await TestServer.start({ files: { "a.txt": "a\n", "dir/b.txt": "b\n" } });
    git("add", ".");
    git("commit", "-q", "-m", "first");
    outside = mkdtempSync(join(tmpdir(), "viv-outside-"));
    writeFileSync(join(outside, "victim"), "untouched\n");
  });
  afterAll(async () => {
    await server?.remove();
    rmSync(outside, { recursive: true, force: true });
  });
  beforeEach(() => {
    git("reset", "-q", "--hard", "HEAD");
    git("clean", "-qfdx");
  });

  test("PM-01: links that lead out are shown, and never written through", async () => {
    const links = {
      absolute: "/etc/passwd",
      climbs: "../x",
      "dir/deep": "../../x",
      turns: "dir/../../x",
      loop: "loop",
      "into-git": ".git/config",
      inside: "a.txt",
      "dir/up": "../a.txt",
    };
    const sandbox = await changed(
      Object.entries(links)
        .map(([name, target]) => `ln -s '${target}' '${name}'`)
        .join("; "),
    );
    expect(risks(await server.client.call("planPromotion", { sandbox }))).toEqual(
      ["absolute", "climbs", "dir/deep", "into-git", "turns"].map((name) => `link-out ${name}`),
    );
  });

  test("PM-01: a folder turned into a link out and a file below it in reality never meet", async () => {
    const sandbox = await changed(`rm -r dir; ln -s ${outside} dir`);
    expect((await promote(sandbox)).state).toBe("applied");
    // The link is there now, and the next change has a path below it: control, a plain write goes through it.
    writeFileSync(path("dir/control"), "through\n");
    expect(readFileSync(join(outside, "control"), "utf8")).toBe("through\n");
    const second = await changed(`rm dir; mkdir dir; echo evil > dir/victim`);
    rmSync(path("dir"));
    symlinkSync(outside, path("dir"));
    await promote(second);
    expect(readFileSync(join(outside, "victim"), "utf8")).toBe("untouched\n");
  });

  test("PM-03: setuid, capabilities, access lists and owners stay inside", needs("setfattr"), async () => {
    const sandbox = await changed(
      "cp /bin/true tool; chmod 6755 tool; setcap cap_net_raw+ep tool 2>/dev/null || true; cp /bin/true mine; chmod 1777 mine; chown 33:33 mine; setfattr -n user.x -v y mine 2>/dev/null || true",
    );
    const inside = await server.sh(sandbox, "stat -c '%a %u' tool mine");
    expect(inside.stdout).toBe("6755 0\n1777 33\n");
    expect(risks(await server.client.call("planPromotion", { sandbox }))).toEqual(["setuid tool"]);
    expect((await promote(sandbox)).state).toBe("applied");
    for (const name of ["tool", "mine"]) {
      const { mode, uid, gid } = statSync(path(name));
      expect([mode & 0o7777, uid, gid]).toEqual([0o755, statSync(server.project).uid, statSync(server.project).gid]);
      expect(execFileSync("getfattr", ["-d", "-m", "-", path(name)], { encoding: "utf8" })).toBe("");
    }
  });

  test("PM-04: devices, pipes and sockets are listed and not promoted", async () => {
    const sandbox = await changed(
      `mkfifo pipe; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("sock")'; rm a.txt; mkdir a.txt; echo x > a.txt/x`,
    );
    const plan = await server.client.call("planPromotion", { sandbox });
    expect(risks(plan)).toEqual(["special pipe", "special sock"]);
    expect((await promote(sandbox)).state).toBe("applied");
    expect([existsSync(path("pipe")), existsSync(path("sock")), readFileSync(path("a.txt/x"), "utf8")]).toEqual([false, false, "x\n"]);
  });

  test("PM-05 HG-04: nothing called .git by any file system's reckoning is promoted", async () => {
    const sandbox = await changed(
      "echo evil > .git/hooks/post-checkout; mkdir -p sub/.git .GIT; echo evil > sub/.git/config; echo evil > .GIT/config; printf x > sub/fine",
    );
    const plan = await server.client.call("planPromotion", { sandbox });
    expect(plan.changes.map((change) => change.path)).toEqual(["sub/fine"]);
    const aliases = await changed("mkdir 'git~1' '.g\u200cit' && echo x > 'git~1/config' && echo x > '.g\u200cit/config'");
    expect(risks(await server.client.call("planPromotion", { sandbox: aliases })).map((risk) => risk.split(" ")[0])).toEqual([
      "git",
      "git",
    ]);
    expect((await promote(aliases)).reason).toBe("There is nothing to promote.");
  });

  test("PM-06: files that run by themselves are told apart from others", async () => {
    const risky = [
      ".envrc",
      ".vscode/tasks.json",
      ".idea/workspace.xml",
      ".claude/settings.json",
      ".codex/config.toml",
      ".mcp.json",
      "AGENTS.md",
      "docs/CLAUDE.md",
      ".husky/pre-commit",
      ".npmrc",
      "Makefile",
      ".github/workflows/ci.yml",
      "Dockerfile",
      "conftest.py",
      "sitecustomize.py",
      "x.pth",
      ".bashrc",
    ];
    const fine = ["src/index.ts", "README.md", ".gitkeep", "test/a.test.ts", "docs/makefile-notes.md"];
    const write = (name: string): string => `mkdir -p $(dirname ${name}); echo x > ${name}`;
    const sandbox = await changed([...risky, ...fine].map(write).join("; "));
    const plan = await server.client.call("planPromotion", { sandbox });
    expect(risks(plan)).toEqual(risky.map((name) => `runs-by-itself ${name}`).toSorted());
    const more = await changed("echo '* filter=evil' > .gitattributes; echo '[submodule \"x\"]' > .gitmodules; echo '{}' > vivarium.json");
    expect(risks(await server.client.call("planPromotion", { sandbox: more }))).toEqual([
      "config vivarium.json",
      "git .gitattributes",
      "submodule .gitmodules",
    ]);
  });

  test("PM-06: package.json is risky when its scripts change, and only then", async () => {
    writeFileSync(path("package.json"), JSON.stringify({ scripts: { test: "true" }, dependencies: { x: "1" } }));
    const fine = await changed(`sed -i 's/"1"/"2"/' package.json`);
    expect(risks(await server.client.call("planPromotion", { sandbox: fine }))).toEqual([]);
    const evil = await changed(`sed -i 's/"test"/"postinstall"/' package.json`);
    expect(risks(await server.client.call("planPromotion", { sandbox: evil }))).toEqual(["runs-by-itself package.json"]);
  });

  test("SC-11: secrets by pattern are found, those that were there before are not", async () => {
    writeFileSync(path("old.txt"), `key AKIA${"B".repeat(16)}\n`);
    const sandbox = await changed(
      `echo more >> old.txt; echo AKIA${"A".repeat(16)} > new.txt; echo 'https://me:hunter22@example.com/x' > url.txt; printf -- '-----BEGIN OPENSSH PRIVATE KEY-----\\n' > key.txt`,
    );
    expect(risks(await server.client.call("planPromotion", { sandbox }))).toEqual(["secret key.txt", "secret new.txt", "secret url.txt"]);
  });

  test("PM-09: what is too large is refused, and nothing of it is seen; twenty thousand files are not", { timeout: 120_000 }, async () => {
    const large = await changed("truncate -s 5G large; echo small > small.txt");
    await expect(promote(large)).rejects.toMatchObject({ code: "too_large" });
    expect(git("status", "--porcelain")).toBe("");
    const many = await changed("mkdir many; cd many; seq 20000 | split -l 1 -a 4 -");
    const promotion = await promote(many);
    expect(promotion).toMatchObject({ state: "applied", plan: { files: 20_000 } });
    expect(promotion.plan?.changes.length).toBe(10_000);
    expect(readdirSync(path("many")).length).toBe(20_000);
  });

  test("PM-10 PM-11: odd names and hidden text are told, and bytes written are the bytes of the plan", async () => {
    const sandbox = await changed(
      String.raw`printf x > "$(printf 'new\nline')"; printf x > -rf; printf x > "$(printf 'bidi\342\200\256txt')"; printf x > "$(printf 'p\320\260ypal.js')"; printf 'a = 1 \342\200\256 ;' > trojan.js; printf 'real\rfake' > cr.txt; printf '\000bin' > bin; printf x > "$(printf 'bad\377utf')"`,
    );
    const plan = await server.client.call("planPromotion", { sandbox });
    expect(risks(plan).map((risk) => risk.split(" ")[0])).toEqual(["hidden-text", "hidden-text", "name", "name", "name", "name", "name"]);
    expect((await promote(sandbox)).state).toBe("applied");
    for (const { path: name, hash } of plan.changes) {
      if (!name.isWellFormed()) continue;
      expect(execFileSync("git", ["hash-object", "--no-filters", "--", name], { cwd: server.project, encoding: "utf8" }).trim()).toBe(hash);
    }
    const names = readdirSync(Buffer.from(server.project), { encoding: "buffer" }).map((name) => name.toString("latin1"));
    expect(names).toContain("bad\xffutf");
  });

  test("PM-12: a project that became a link, or is gone, is refused", async () => {
    const project = join(server.place, "second");
    mkdirSync(project);
    writeFileSync(join(project, "a"), "a\n");
    execFileSync("git", ["init", "-q", "."], { cwd: project });
    const { id } = await server.client.call("createSandbox", { project });
    await server.sh(id, "echo evil > victim");
    rmSync(project, { recursive: true });
    await expect(promote(id)).rejects.toMatchObject({ code: "project_not_found" });
    symlinkSync(outside, project);
    await expect(promote(id)).rejects.toMatchObject({ code: "project_not_found" });
    expect(readFileSync(join(outside, "victim"), "utf8")).toBe("untouched\n");
  });

  test("HG-01 HG-03 HG-08: settings, attributes and submodules of the sandbox's repository run nothing on the host", async () => {
    const marker = join(outside, "ran");
    const evil = `touch ${marker}`;
    const settings = [
      "core.fsmonitor",
      "core.hooksPath",
      "core.pager",
      "core.sshCommand",
      "diff.external",
      "filter.evil.clean",
      "filter.evil.smudge",
      "merge.evil.driver",
      "alias.status",
    ];
    const lines = settings.map((name) => `git config ${name} '${evil}'`);
    const sandbox = await changed(
      `${lines.join("; ")}; echo '*.txt filter=evil merge=evil diff=evil' > .gitattributes; printf '[submodule "x"]\\n\\tpath = x\\n\\turl = ext::sh -c "${evil}"\\n' > .gitmodules; echo more >> a.txt`,
    );
    await server.client.call("planPromotion", { sandbox });
    expect((await promote(sandbox)).state).toBe("applied");
    await server.client.call("undoPromotion", { project: server.project });
    expect(existsSync(marker)).toBe(false);
    // Control: the same setting runs in a repository that git is let into.
    const control = mkdtempSync(join(outside, "control-"));
    execFileSync("git", ["init", "-q", "."], { cwd: control });
    execFileSync("git", ["config", "core.fsmonitor", evil], { cwd: control });
    execFileSync("git", ["status"], { cwd: control, stdio: "pipe" });
    expect(lstatSync(marker).isFile()).toBe(true);
  });
});
