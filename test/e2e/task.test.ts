/** `viv task` as a user types it, with a command as the agent: from the task to the proven change in the project. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { viv } from "../support/viv.ts";

describe("a task for a command", needs("root"), () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await TestServer.start({ config: { agents: { line: { protocol: "command", command: ["sh", "-c", "{task}"] } } } });
  });
  afterAll(async () => server?.remove());

  test("EXP-1: is done in a clone, proven by its check, and promoted", () => {
    const { code, out } = viv(
      server,
      ["task", "echo working; echo fixed > hello.txt", "--agent", "line", "--check", "grep -q fixed hello.txt", "--promote", "--json"],
      { cwd: server.project },
    );
    expect([code, JSON.parse(out)]).toMatchObject([
      0,
      {
        agent: "line",
        state: "completed",
        outcome: "done",
        verdict: "passed",
        cost: 0,
        change: { files: 1 },
        promotion: expect.any(String),
      },
    ]);
    expect(readFileSync(join(server.project, "hello.txt"), "utf8")).toBe("fixed\n");
  });

  test("EXP-1: that fails leaves the project as it was, and says why", () => {
    const { code, out } = viv(server, ["task", "echo broken > broken.txt; exit 3", "--agent", "line", "--json"], { cwd: server.project });
    expect([code, JSON.parse(out)]).toMatchObject([1, { outcome: "failed", reason: "line ended with 3." }]);
    expect(existsSync(join(server.project, "broken.txt"))).toBe(false);
  });
});
