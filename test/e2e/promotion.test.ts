/** Changes of sandboxes on their way into a real project, and back. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, readlinkSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const FILES = {
  "a.txt": "1\n2\n3\n4\n5\n6\n7\n8\n9\n",
  "b.txt": "b\n",
  "c/d.txt": "d\n",
  ".gitignore": "ignored/\n*.log\n",
  "run.sh": "#!/bin/sh\n",
};

for (const storage of ["btrfs", "plain"] as const) {
  describe(`PROM-2 PROM-4 promotion on ${storage}`, storage === "btrfs" ? needs("root", "btrfs") : needs("root"), () => {
    let server: TestServer;
    const path = (name: string): string => join(server.project, name);
    const git = (...args: string[]): string =>
      execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@a", ...args], { cwd: server.project, encoding: "utf8" });

    beforeAll(async () => {
      server = await TestServer.start({ config: { storage }, files: FILES });
      git("add", ".");
      git("commit", "-q", "-m", "first");
    });
    afterAll(async () => server?.remove());

    test("brings files, modes, links and deletions into the folder, and back with one undo", async () => {
      const before = git("status", "--porcelain");
      const mtime = statSync(path("a.txt"), { bigint: true }).mtimeNs;
      const { id } = await server.create();
      await server.sh(
        id,
        "sed -i s/5/five/ a.txt; rm b.txt; mkdir -p new/deep; echo n > new/deep/n; ln -s ../a.txt c/link; chmod +x run.sh; mkdir ignored; echo x > ignored/x; echo l > some.log",
      );
      const plan = await server.client.call("planPromotion", { sandbox: id });
      expect(plan.conflicts).toEqual([]);
      expect(plan.risks).toEqual([]);
      expect(plan.changes.map(({ path: at, status }) => `${status} ${at}`)).toEqual([
        "changed a.txt",
        "deleted b.txt",
        "added c/link",
        "added new/deep/n",
        "changed run.sh",
      ]);
      expect(plan.leftOut.map(({ path: at, why }) => `${at} ${why}`).toSorted()).toEqual(["ignored/x ignored", "some.log ignored"]);
      expect(git("status", "--porcelain")).toBe(before);

      const promotion = await server.client.call("promote", { sandbox: id });
      expect(promotion).toMatchObject({ state: "applied", reason: null });
      expect(promotion.plan?.hash).toBe(plan.hash);
      expect(readFileSync(path("a.txt"), "utf8")).toContain("five");
      expect(existsSync(path("b.txt"))).toBe(false);
      expect(readFileSync(path("new/deep/n"), "utf8")).toBe("n\n");
      expect(readlinkSync(path("c/link"))).toBe("../a.txt");
      expect(statSync(path("run.sh")).mode & 0o111).toBe(0o111);
      expect(existsSync(path("ignored"))).toBe(false);

      const undo = await server.client.call("undoPromotion", { project: server.project });
      expect(undo).toMatchObject({ kind: "undo", state: "applied", undoes: promotion.id });
      expect(git("status", "--porcelain")).toBe(before);
      expect(readFileSync(path("b.txt"), "utf8")).toBe("b\n");
      expect(existsSync(path("new"))).toBe(false);
      expect(statSync(path("a.txt"), { bigint: true }).mtimeNs).toBe(mtime);
    });
  });
}
