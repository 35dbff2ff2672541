/** The main job as a user does it: try, compare, promote, undo. */
import { execFileSync } from "node:child_process";
import { linkSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { viv, type Answer, type VivOptions } from "../support/viv.ts";

const FILES = {
  "count.sh": "echo $(($# + 1))\n",
  "test.sh": 'test "$(sh count.sh a b)" = 2\n',
  "packages/one/value": "wrong\n",
  "packages/one/check.sh": "grep -q right value\n",
};

describe("trying, promoting and undoing at the command line", needs("root"), () => {
  let server: TestServer;
  const run = (words: string[], options: VivOptions = {}): Answer => viv(server, words, { cwd: server.project, ...options });
  const count = (): string => readFileSync(join(server.project, "count.sh"), "utf8");

  beforeAll(async () => {
    server = await TestServer.start({ files: FILES });
    execFileSync("git", ["add", "."], { cwd: server.project });
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@a", "commit", "-qm", "first"], { cwd: server.project });
  });
  afterAll(async () => server?.remove());

  test("EXP-1 PROM-4 PROM-5: the winner of three lands in the project, and one command takes it back", () => {
    linkSync(join(server.project, "count.sh"), join(server.project, "same.sh"));
    const attempts = ["-a", "fix=sed -i 's/ + 1//' count.sh", "-a", "worse=sed -i 's/ + 1/ + 2/' count.sh", "-a", "fails=exit 3"];
    const tried = run(["try", ...attempts, "--check", "sh test.sh"]);
    expect(tried).toMatchObject({ code: 0, out: expect.stringMatching(/^1 +fix +0 +1\/1 +1 file \+1 -1 /m) });
    expect(tried.out).toMatch(/^[-\d] +fails +3 /m);
    expect(tried.out).toMatch(/^baseline +0\/1$/m);
    expect(count()).toBe(FILES["count.sh"]);
    const id = /viv promote (exp\w+)/.exec(tried.err)?.[1] ?? "";

    expect(run(["promote", "--dry-run", id])).toMatchObject({ code: 0, out: expect.stringContaining("M  100644  count.sh\n") });
    expect(count()).toBe(FILES["count.sh"]);
    expect(run(["promote", id])).toMatchObject({ code: 0, err: expect.stringMatching(/^dev passed/m) });
    expect(count()).toBe("echo $(($#))\n");
    expect(run(["promotions"]).out).toMatch(/ 1 +dev +applied$/m);
    expect(run(["undo"])).toMatchObject({ code: 0, out: expect.stringContaining("count.sh is as it was\n") });
    expect(count()).toBe(FILES["count.sh"]);
    expect(statSync(join(server.project, "count.sh")).ino).toBe(statSync(join(server.project, "same.sh")).ino);
  });

  test("EXP-1 PROM-4: attempts, their setup, measure and checks run in the folder they were typed in, also when the winner is promoted", () => {
    const cwd = join(server.project, "packages", "one");
    const value = (): string => readFileSync(join(cwd, "value"), "utf8");
    const typed = ["try", "echo right > value", "-c", "sh check.sh", "--setup", "test -f value", "--measure", "wc -c < value", "--json"];
    const tried = JSON.parse(run(typed, { cwd }).out);
    expect(tried).toMatchObject({
      winner: 1,
      attempts: [{ verified: { passed: true, measure: 6 } }],
      baseline: { passed: false, measure: 6 },
    });
    // Another folder is named as one would name it for cd.
    expect(run(["try", "sh check.sh", "--cwd", "packages/one", "--json"])).toMatchObject({ out: expect.stringContaining('"exitCode":1') });
    expect(run(["try", "true", "--cwd", "/etc"])).toMatchObject({ code: 2, err: expect.stringContaining("/etc is not in the project") });

    expect(run(["promote", tried.id, "--to", "dev-tested"])).toMatchObject({ code: 0 });
    expect(value()).toBe("right\n");
    expect(run(["undo"])).toMatchObject({ code: 0 });
    expect(run(["promote", tried.id, "-c", "sh check.sh", "--to", "dev-tested"], { cwd })).toMatchObject({ code: 0 });
    expect(value()).toBe("right\n");
    expect(run(["undo"])).toMatchObject({ code: 0 });
  });

  test("EXP-3: no attempt wins where no check passes, and the exit code is 1", () => {
    const tried = run(["try", "echo more >> count.sh", "--check", "sh test.sh", "--keep", "none", "--json"]);
    expect(tried).toMatchObject({ code: 1, err: "" });
    expect(JSON.parse(tried.out)).toMatchObject({ state: "done", winner: null });
  });

  test("PROM-4: status says when a promotion was interrupted, until a server has brought it to its end or back", async () => {
    await server.create({ name: "box" });
    await server.sh("box", "echo changed > count.sh");
    await server.arm("promote.journalled");
    const promoted = run(["promote", "box", "-c", "true"], { env: { VIV_NO_START: "1" } });
    expect(promoted).toMatchObject({ code: 125, err: expect.stringContaining("`viv promotions` says which") });
    await server.died();
    expect(run(["status"])).toMatchObject({ code: 0, err: expect.stringMatching(/^Promotion prm\w+ is not finished/) });
    expect(JSON.parse(run(["status", "--json"]).out)).toMatchObject({ running: false, pendingPromotions: [expect.stringMatching(/^prm/)] });
    await server.up();
    expect(run(["status"])).toMatchObject({ code: 0, err: "" });
    expect(count()).toBe(FILES["count.sh"]);
  });
});
