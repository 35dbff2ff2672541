/** CLONE-6: how a sandbox stands to reality. */
import { execFileSync } from "node:child_process";
import { appendFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

for (const storage of ["btrfs", "plain"] as const) {
  describe(`CLONE-6 the status of a sandbox on ${storage}`, storage === "btrfs" ? needs("root", "btrfs") : needs("root"), () => {
    let server: TestServer;

    beforeAll(async () => {
      server = await TestServer.start({ config: { storage }, files: { "a.txt": "1\n", "b.txt": "1\n", "c.txt": "1\n" } });
    });
    afterAll(async () => server?.remove());

    const git = (...args: string[]): string =>
      execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@a", ...args], { cwd: server.project, encoding: "utf8" });

    test("tells the commits and files that moved, and which of them changed inside, too", async () => {
      git("add", ".");
      git("commit", "-q", "-m", "first");
      const { id } = await server.create();
      expect(await server.client.call("sandboxStatus", { sandbox: id })).toMatchObject({
        stale: false,
        commits: 0,
        changes: [],
        changedInside: 0,
      });
      await server.sh(id, "echo inside >> a.txt; echo inside > new.txt");
      appendFileSync(join(server.project, "a.txt"), "2\n");
      rmSync(join(server.project, "b.txt"));
      git("commit", "-q", "-a", "-m", "second");
      git("commit", "-q", "--allow-empty", "-m", "third");
      writeFileSync(join(server.project, "c.txt"), "not committed\n");
      const status = await server.client.call("sandboxStatus", { sandbox: id });
      expect(status).toMatchObject({ stale: true, commits: 2, changedInside: 2, more: false });
      expect(status.changes).toEqual([
        { path: ".git", status: "changed", changedInside: false },
        { path: "a.txt", status: "changed", changedInside: true },
        { path: "b.txt", status: "deleted", changedInside: false },
        { path: "c.txt", status: "changed", changedInside: false },
      ]);
    });
  });
}
