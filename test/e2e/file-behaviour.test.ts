/** What programs expect of the project's files, on every storage, beside the same program on the machine's own disk. */
import { execFileSync } from "node:child_process";
import { linkSync, mkdirSync, mkdtempSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { compile, outcomes, type Outcomes } from "../support/attacks.ts";
import { TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const FILES = { "base/inner/file": "base\n", "base/gone": "gone!\n", "base/one": "one\n" };
const LONG_AGO = new Date("2001-09-09T01:46:40.250Z");

function prepare(folder: string): void {
  for (const [name, content] of Object.entries(FILES)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), content);
  }
  linkSync(join(folder, "base/one"), join(folder, "base/two"));
  utimesSync(join(folder, "base/inner/file"), LONG_AGO, LONG_AGO);
}

describe.each(["btrfs", "plain"] as const)("project files on %s", (storage) => {
  describe("behave as on a disk", storage === "btrfs" ? needs("root", "btrfs", "compiler") : needs("root", "compiler"), () => {
    let server: TestServer;
    let box: string;

    beforeAll(async () => {
      server = await TestServer.start({ config: { storage } });
      prepare(server.project);
      compile(server.project, "semantics");
      box = (await server.create()).id;
    });
    afterAll(async () => server?.remove());

    test("times of captured files are kept", async () => {
      expect((await server.sh(box, "stat -c '%.3Y %s' base/inner/file")).stdout).toBe("1000000000.250 5\n");
    });

    test("renames, links, inodes, maps, holes, attributes, locks, names and open files", async () => {
      const { stdout } = await server.client.call("runCommand", { sandbox: box, command: [join(server.project, "semantics")] });
      const results = outcomes(stdout);
      expect(Object.keys(results)).toEqual(Object.keys(control()));
      // An overlay copies one of several names at its first write: known, documented, and why btrfs is the default.
      const known = storage === "plain" ? ["hard-links-of-base"] : [];
      expect(Object.keys(results).filter((name) => results[name] !== "ok")).toEqual(known);
    });

    test("a snapshot keeps times, links and holes, and a rollback brings them back", async () => {
      await server.sh(
        box,
        "mkdir -p keep; echo x > keep/a; ln keep/a keep/b; truncate -s 8M keep/hole; touch -d 2002-02-02 keep/a; setfattr -n user.k -v v keep/a",
      );
      const look =
        "stat -c '%n %h %s %Y %b' keep/a keep/hole | sed 's/ [0-9]$//'; [ keep/a -ef keep/b ] && echo same; getfattr --only-values -n user.k keep/a";
      const before = (await server.sh(box, look)).stdout;
      const snapshot = await server.client.call("createSnapshot", { sandbox: box });
      await server.sh(box, "rm -rf keep base; echo other > keep");
      await server.client.call("rollback", { sandbox: box, snapshot: snapshot.id });
      expect((await server.sh(box, look)).stdout).toBe(before);
      expect(before).toContain("same");
      const { sandboxes } = await server.client.call("forkSandbox", { sandbox: box });
      expect((await server.sh(sandboxes[0]?.id ?? "", look)).stdout).toBe(before);
    });

    test("nothing of it reached the project in reality", () => {
      expect(statSync(join(server.project, "base/inner/file")).mtimeMs).toBe(LONG_AGO.getTime());
      expect(execFileSync("ls", ["-A", server.project], { encoding: "utf8" }).trim().split("\n")).toEqual([
        ".git",
        "base",
        "hello.txt",
        "semantics",
      ]);
    });
  });
});

/** The machine's own disk passes every check, so a failure inside is the storage's. */
function control(): Outcomes {
  const folder = mkdtempSync(join(tmpdir(), "viv-semantics-"));
  try {
    prepare(folder);
    compile(folder, "semantics");
    const results = outcomes(execFileSync(join(folder, "semantics"), { cwd: folder, encoding: "utf8" }));
    expect(Object.values(results).filter((result) => result !== "ok")).toEqual([]);
    return results;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
