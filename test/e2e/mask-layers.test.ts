/** The mask layers in a state folder, over a restart of the server. */
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { needs } from "../support/skip.ts";
import { TestServer } from "../support/server.ts";

describe("mask layers", needs("root"), () => {
  test("CLONE-6: go when no sandbox has them mounted, and stay where one has", async () => {
    const other = await TestServer.start();
    try {
      const folder = join(other.paths.home, "masks");
      const box = await other.create();
      const [mine] = readdirSync(folder);
      mkdirSync(join(folder, "0".repeat(32)));
      await other.kill();
      await other.up();
      expect(readdirSync(folder)).toEqual([mine]);
      expect((await other.sh(box.id, "cat /etc/shadow-; cat hello.txt")).stdout).toBe("hello\n");
    } finally {
      await other.remove();
    }
  });
});
