/** PROM-1: what a sandbox changed, as a list and as a patch that makes the base equal to it, also for trees made to trick git. */
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const FILES = {
  "hello.txt": "hello\n",
  "src/main.js": "console.log(1);\n".repeat(20),
  "src/util.js": "export const two = 2;\n".repeat(20),
  "old/one.txt": "first\n".repeat(30),
  "old/two.txt": "second\n".repeat(30),
  "kept/name.txt": "1\n",
  "crlf.txt": "a\r\nb\r\n",
  "tail.txt": "no newline",
  "data.bin": "\0\u0001\u0002binary",
  run: "#!/bin/sh\n",
  "becomes-folder": "file\n",
  "becomes-file/inner": "inner\n",
};

/** One line each, so that what fails is named. */
const CHANGES = [
  "echo more >> hello.txt",
  "printf 'a\\r\\nchanged\\r\\n' > crlf.txt",
  "printf 'still none' > tail.txt",
  "printf '\\0\\377\\376x' > data.bin; printf '\\0new' > new.bin",
  "chmod +x run",
  "rm src/util.js",
  "mv src/main.js src/renamed.js; echo '// end' >> src/renamed.js",
  "mv old young",
  "touch empty; mkdir empty-folder",
  "ln -s hello.txt link; ln -s /etc/shadow outside; ln -s nowhere dangling",
  "rm becomes-folder; mkdir becomes-folder; echo x > becomes-folder/x",
  "rm -r becomes-file; echo another > becomes-file",
  "mkfifo pipe",
  `perl -e 'for my $n ("new\\nline", "tab\\there", "\\xff\\xfe", "-rf", "--output=x", q(quo"te), q(back\\\\slash), "a\\x1fb", " lead", "trail ", "\\xc3\\xa4", "*", ":(glob)") { mkdir q(names); open(F, q(>), "names/$n") or die; print F "content of it\\n" }'`,
];

/** A tree as names, kinds, modes that matter and contents. Empty folders and special files are no part of a patch. */
function listTree(folder: string): string {
  const script = `cd "$1" && find . -name .git -prune -o \\( -type f -o -type l \\) -print0 | LC_ALL=C sort -z | perl -0ne 'chomp; my $x = -l $_ ? "link ".readlink($_) : ((-x $_ ? "x " : "- ").do { local $/; open(my $f, q(<), $_) or die "$_: $!"; <$f> // "" }); print "$_\\0$x\\0"'`;
  return execFileSync("bash", ["-c", script, "list", folder], { maxBuffer: 1 << 28, encoding: "latin1" });
}

for (const storage of ["btrfs", "plain"] as const) {
  describe(`PROM-1 the diff of a sandbox on ${storage}`, storage === "btrfs" ? needs("root", "btrfs") : needs("root"), () => {
    let server: TestServer;
    let box: string;
    let scratch: string;

    beforeAll(async () => {
      server = await TestServer.start({ config: { storage }, files: FILES });
      scratch = mkdtempSync(join(server.place, "scratch-"));
    });
    beforeEach(async () => {
      box = (await server.create()).id;
    });
    afterEach(async () => {
      await server.client.call("removeSandbox", { sandbox: box });
      await eventually(
        () => readdirSync(join(server.paths.home, "tmp")),
        (left) => left.length === 0,
      );
    });
    afterAll(async () => server?.remove());

    const inside = async (line: string): Promise<void> => {
      const result = await server.sh(box, line);
      expect(`${result.end?.exitCode} ${result.stderr}`).toBe("0 ");
    };

    /** Applies the patch to a copy of the base, and gives both trees. */
    async function applied(): Promise<{ patched: string; sandbox: string; patch: Buffer }> {
      const base = mkdtempSync(join(scratch, "base-"));
      cpSync(server.project, base, { recursive: true, verbatimSymlinks: true });
      rmSync(join(base, ".git"), { recursive: true });
      const patch = await buffer(await server.client.patch(box));
      writeFileSync(`${base}.patch`, patch);
      const env = { PATH: process.env["PATH"], GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_NOSYSTEM: "1", GIT_CEILING_DIRECTORIES: scratch };
      if (patch.length > 0) execFileSync("git", ["apply", "--whitespace=nowarn", `${base}.patch`], { cwd: base, env });
      const copy = `${base}.sandbox`;
      mkdirSync(copy);
      writeFileSync(
        `${base}.tar`,
        (
          await server.client.call("runCommand", {
            sandbox: box,
            command: ["/bin/sh", "-c", "tar c --exclude=.git --exclude=pipe . | base64"],
          })
        ).stdout,
      );
      execFileSync("bash", ["-c", `base64 -d < "$1.tar" | tar x -C "$1.sandbox"`, "unpack", base]);
      return { patched: listTree(base), sandbox: listTree(copy), patch };
    }

    test("nothing changed is an empty patch", async () => {
      expect((await applied()).patch.toString()).toBe("");
      expect(await server.client.call("diffSandbox", { sandbox: box, stat: true })).toEqual({ entries: [], more: false });
    });

    test("PROM-1 PROM-3: what a promotion leaves out is told apart, by rules of the base and by those made inside; neither hides what is risky", async () => {
      await inside("printf 'node_modules/\nhello.txt\nsrc/\n.envrc\nfolder/\n' > .gitignore");
      await inside(
        "mkdir -p node_modules/a; echo 1 > node_modules/a/index.js; echo all: > node_modules/a/Makefile; echo {} > node_modules/.lock",
      );
      await inside("echo more >> hello.txt; echo new > src/new.js; rm src/util.js; echo evil > .envrc; mkfifo pipe");
      await inside(
        "mkdir folder sub empty; echo evil > folder/.envrc; echo k > folder/k; echo '*.tmp' > sub/.gitignore; echo t > sub/a.tmp; echo p > sub/p",
      );
      const { entries } = await server.client.call("diffSandbox", { sandbox: box, stat: true });
      const told = entries.filter(({ type }) => type !== "dir").map(({ path, leftOut }) => `${path} ${leftOut ?? "promoted"}`);
      expect(told).toEqual([
        ".envrc promoted",
        ".gitignore promoted",
        "folder/.envrc promoted",
        "folder/k ignored",
        "hello.txt promoted",
        "node_modules/.lock ignored",
        "node_modules/a/Makefile ignored",
        "node_modules/a/index.js ignored",
        "pipe special",
        "src/new.js ignored",
        "src/util.js promoted",
        "sub/.gitignore promoted",
        "sub/a.tmp ignored",
        "sub/p promoted",
      ]);
      const folders = entries.filter(({ type }) => type === "dir").map(({ path, leftOut }) => `${path} ${leftOut ?? "promoted"}`);
      expect(folders).toEqual(["empty folder", "folder promoted", "node_modules ignored", "node_modules/a ignored", "sub promoted"]);

      const wanted = entries.filter(({ leftOut }) => leftOut === null);
      const names = await server.client.call("diffSandbox", { sandbox: box, promotable: true });
      expect(names.entries.map(({ path }) => path)).toEqual(wanted.map(({ path }) => path));
      const plan = await server.client.call("planPromotion", { sandbox: box });
      expect(plan.changes.map(({ path }) => path)).toEqual(wanted.filter(({ type }) => type !== "dir").map(({ path }) => path));
      expect(plan.risks.map(({ path }) => path)).toEqual(expect.arrayContaining([".envrc", "folder/.envrc"]));
      const patch = (await buffer(await server.client.patch(box, { promotable: true }))).toString();
      expect(patch).toContain("+++ b/sub/p\n");
      expect(patch).not.toContain("node_modules/a");
    });

    test("a patch makes the base equal to the sandbox, byte for byte", async () => {
      for (const change of CHANGES) await inside(change);
      const { patched, sandbox } = await applied();
      expect(patched).toBe(sandbox);
      expect(patched).toContain("young/one.txt");
    });

    test("each kind of change alone gives a patch that applies", async () => {
      const clean = await server.client.call("createSnapshot", { sandbox: box });
      for (const change of CHANGES) {
        await inside(change);
        const { patched, sandbox } = await applied();
        expect(`${change}\n${patched}`).toBe(`${change}\n${sandbox}`);
        await server.client.call("rollback", { sandbox: box, snapshot: clean.id });
      }
    });

    test("the list tells renames, modes, links, binaries and counts", async () => {
      for (const change of CHANGES) await inside(change);
      const { entries } = await server.client.call("diffSandbox", { sandbox: box, stat: true });
      const told = entries
        .filter(({ path }) => !path.startsWith("names/"))
        .map((entry) => {
          const modes = entry.oldMode === entry.newMode ? "" : ` ${entry.oldMode}>${entry.newMode}`;
          return `${entry.status} ${entry.type} ${entry.from === null ? "" : `${entry.from}>`}${entry.path}${modes} ${entry.added}/${entry.removed}`;
        });
      expect(told).toEqual(
        [
          "changed file becomes-file 40000>100644 null/null",
          "deleted file becomes-file/inner 100644>null 0/1",
          "changed dir becomes-folder 100644>40000 null/null",
          "added file becomes-folder/x null>100644 1/0",
          "changed file crlf.txt 1/1",
          "added link dangling null>120000 null/null",
          "changed file data.bin null/null",
          "added file empty null>100644 0/0",
          "added dir empty-folder null>40000 null/null",
          "changed file hello.txt 1/0",
          "added link link null>120000 null/null",
          "added dir names null>40000 null/null",
          "added file new.bin null>100644 null/null",
          "deleted dir old 40000>null null/null",
          "added link outside null>120000 null/null",
          "added fifo pipe null/null",
          "changed file run 100644>100755 0/0",
          "renamed file src/main.js>src/renamed.js 1/0",
          "deleted file src/util.js 100644>null 0/20",
          "changed file tail.txt 1/1",
          "added dir young null>40000 null/null",
          "renamed file old/one.txt>young/one.txt 0/0",
          "renamed file old/two.txt>young/two.txt 0/0",
        ].toSorted((one, other) => (pathIn(one) < pathIn(other) ? -1 : 1)),
      );
      expect(entries.filter(({ path }) => path.startsWith("names/"))).toHaveLength(13);
      const names = await server.client.call("diffSandbox", { sandbox: box });
      expect(names.entries.filter(({ status }) => status === "renamed")).toEqual([]);
      expect(names.entries.map((entry) => entry.path)).toContain("old/one.txt");
    });

    test("HG-01 HG-03 HG-04 what a tree says to git runs nothing and changes no byte of a patch", async () => {
      const marker = join(scratch, "marker");
      const trap = `touch ${marker}; cat`;
      const settings = [
        `[core]\\n\\tfsmonitor = ${trap}\\n\\tautocrlf = true\\n[diff "evil"]\\n\\ttextconv = ${trap}\\n\\tcommand = ${trap}\\n[filter "evil"]\\n\\tclean = ${trap}\\n\\tsmudge = ${trap}\\n\\trequired = true\\n`,
      ];
      const attributes = "* filter=evil diff=evil merge=evil text eol=crlf working-tree-encoding=UTF-16 ident\\n*.txt binary\\n";
      await inside(
        `printf '${settings[0]}' >> .git/config; printf '${attributes}' > .gitattributes; printf '\\044Id\\044\\r\\nx\\n' > odd.txt; echo 1 >> hello.txt`,
      );
      await inside(
        `mkdir -p nested/.git/hooks; printf '${settings[0]}' > nested/.git/config; echo 'ref: refs/heads/x' > nested/.git/HEAD; echo y > nested/file`,
      );
      await inside(
        "mkdir pointed; echo 'gitdir: /etc' > pointed/.git; echo y > pointed/file; ln -s / root; ln -s .git/config config-link; mkdir sub; echo z > sub/.GIT",
      );
      const { patched, sandbox, patch } = await applied();
      expect(patched.replace(/\.\/sub\/\.GIT\0- z\n\0/, "")).toBe(sandbox.replace(/\.\/sub\/\.GIT\0- z\n\0/, ""));
      expect(patch.toString("latin1")).not.toMatch(/^diff --git .*\.git\//im);
      expect(patch.toString("latin1")).toContain("+++ b/hello.txt");
      await server.client.call("diffSandbox", { sandbox: box, stat: true });
      expect(existsSync(marker)).toBe(false);
      // The same tree does run something where a plain git looks at it.
      const control = mkdtempSync(join(scratch, "control-"));
      execFileSync("git", ["init", "-q", control]);
      writeFileSync(join(control, "hello.txt"), "hello\n");
      writeFileSync(join(control, ".gitattributes"), "* filter=evil\n");
      execFileSync("git", ["-C", control, "config", "filter.evil.clean", trap]);
      execFileSync("git", ["-C", control, "add", "."]);
      expect(existsSync(marker)).toBe(true);
      rmSync(marker);
    });

    test("attributes that only an overlay may set hide nothing when a sandbox forges them", needs("setfattr"), async () => {
      await inside("touch kept/new.txt; setfattr -n user.overlay.opaque -v y kept; setfattr -n user.overlay.redirect -v /src kept");
      const { entries } = await server.client.call("diffSandbox", { sandbox: box });
      expect(entries.map(({ path, status }) => `${status} ${path}`)).toEqual(["added kept/new.txt"]);
    });

    test("what is too large for a patch is said, and the list goes on without it", async () => {
      await inside("truncate -s 600M huge; echo 1 >> hello.txt");
      await expect(server.client.patch(box)).rejects.toMatchObject({ code: "too_large" });
      const { entries } = await server.client.call("diffSandbox", { sandbox: box, stat: true });
      expect(entries.map(({ path, added }) => `${path} ${added}`)).toEqual(["hello.txt 1", "huge null"]);
    });

    test("a stopped sandbox still has its patch", async () => {
      await inside("echo 1 >> hello.txt");
      await server.client.call("stopSandbox", { sandbox: box });
      expect((await buffer(await server.client.patch(box))).toString()).toContain("+1\n");
    });

    test("changes outside the project are packages, /etc and folders", async () => {
      const status = "/var/lib/dpkg/status";
      const lines = [
        `printf '\\nPackage: viv-made-up\\nStatus: install ok installed\\nVersion: 1.2-3\\n\\n' >> ${status}`,
        `perl -0pi -e 's/(Package: bash\\n.*?\\nVersion: )[^\\n]+/\${1}99.9/s; s/(Package: tar\\n(?:[^\\n]+\\n)*?Status: )install ok installed/\${1}deinstall ok config-files/' ${status}`,
        "echo 1 >> /etc/viv-new.conf; rm /etc/issue",
        "mkdir -p /usr/lib/node_modules/@viv/tool /usr/local/lib/python3.11/dist-packages/viv_thing-2.0.dist-info",
        `echo '{"version":"4.5.6"}' > /usr/lib/node_modules/@viv/tool/package.json`,
        "touch /usr/local/lib/python3.11/dist-packages/viv_thing-2.0.dist-info/METADATA; touch /opt/viv-one /opt/viv-two",
      ];
      for (const line of lines) expect((await server.sh(box, line, { user: "root" })).stderr).toBe("");
      const system = await server.client.call("diffSystem", { sandbox: box });
      expect(system.packages).toEqual([
        { manager: "dpkg", name: "bash", old: expect.any(String), new: "99.9" },
        { manager: "dpkg", name: "tar", old: expect.any(String), new: null },
        { manager: "dpkg", name: "viv-made-up", old: null, new: "1.2-3" },
        { manager: "npm", name: "@viv/tool", old: null, new: "4.5.6" },
        { manager: "pip", name: "viv_thing", old: null, new: "2.0" },
      ]);
      expect(system.etc.map(({ path, status: what }) => `${what} ${path}`)).toEqual(["deleted /etc/issue", "added /etc/viv-new.conf"]);
      expect(system.folders.find(({ path }) => path === "/opt")).toEqual({ path: "/opt", added: 2, changed: 0, deleted: 0 });
      expect(system.folders.map(({ path }) => path)).toContain("/var/lib");
    });
  });
}

function pathIn(told: string): string {
  return (told.split(" ")[2] ?? "").split(">").at(-1) ?? "";
}
