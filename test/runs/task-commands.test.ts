/** A day with `viv task` as it is typed: a change that is promoted, one that becomes a pull request, an agent that is spoken to. */
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RunLab } from "../support/agents/run-lab.ts";
import { TestForge } from "../support/forge.ts";
import { GitHttp } from "../support/git-http.ts";
import { TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { startViv } from "../support/viv.ts";

describe("a task as it is typed", needs("root", "git"), () => {
  let server: TestServer;
  let lab: RunLab;
  let http: GitHttp;
  let forge: TestForge;
  const git = (...args: readonly string[]): string =>
    execFileSync("git", args, {
      cwd: server.project,
      encoding: "utf8",
      stdio: "pipe",
      env: { PATH: process.env["PATH"], HOME: server.place },
    });
  const origin = (): string => join(server.place, "ada/shop.git");

  beforeAll(async () => {
    forge = await TestForge.open("ada/shop", (branch) => execFileSync("git", ["-C", origin(), "branch", "--list", branch]).length > 0);
    server = await TestServer.start({
      config: RunLab.config({ forge: { url: forge.url, token: forge.token, host: "127.0.0.1" } }),
    });
    lab = RunLab.on(server);
    writeFileSync(join(server.place, ".gitconfig"), "[user]\nname = Ada\nemail = ada@example.com\n");
    git("add", ".");
    git("commit", "-q", "-m", "first");
    execFileSync("git", ["init", "-q", "--bare", origin()]);
    http = await GitHttp.open(server.place);
    git("remote", "add", "origin", `${http.url}/ada/shop.git`);
  });
  afterAll(async () => {
    await server?.remove();
    await http?.close();
    await forge?.close();
  });

  /** Beside this process, which is the forge. */
  async function type(...words: readonly string[]): Promise<{ code: number; out: string; err: string }> {
    const child = startViv(server, words, { cwd: server.project });
    child.stdin.end();
    const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close") as Promise<[number]>]);
    return { code, out, err };
  }
  /** Leaves an agent running that waits for a file; answers with its run. */
  async function detached(): Promise<string> {
    const { code, out } = await type("task", "write begun.txt yes\nhold go", "--detach");
    expect([code, out]).toEqual([0, expect.stringMatching(/^run[0-9a-z]+\n$/)]);
    const id = out.trim();
    await lab.waitForEvent(id, "tool_result");
    return id;
  }

  test("EXP-1: brings a proven change into the project with --promote, and leaves it out where its check fails", async () => {
    const failed = await type("task", "write wrong.txt yes", "--check", "test -f right.txt", "--promote");
    expect([failed.code, existsSync(join(server.project, "wrong.txt"))]).toEqual([1, false]);
    const { code, out } = await type("task", "write fixed.txt yes", "--check", "test -f fixed.txt", "--promote");
    expect([code, readFileSync(join(server.project, "fixed.txt"), "utf8")]).toEqual([0, "yes\n"]);
    expect(out).toContain("fixed.txt");
  });

  test("PROM-7: becomes a branch and a pull request with --branch --pr, and the checkout stays as it is", async () => {
    const before = git("status", "--porcelain") + git("rev-parse", "HEAD");
    const { code, out, err } = await type("task", "write offered.txt yes", "--check", "test -f offered.txt", "--branch", "--pr", "--json");
    expect([code, err]).toEqual([0, expect.any(String)]);
    const { promotion, outcome } = JSON.parse(out) as { promotion: string; outcome: string };
    const { state, branch } = await server.client.call("inspectPromotion", { promotion });
    expect([outcome, state]).toEqual(["done", "applied"]);
    const name = branch?.name ?? "";
    expect(forge.pulls).toMatchObject([{ head: { ref: name }, html_url: branch?.pullRequest }]);
    expect(execFileSync("git", ["-C", origin(), "show", `${name}:offered.txt`], { encoding: "utf8" })).toBe("yes\n");
    expect(git("status", "--porcelain") + git("rev-parse", "HEAD")).toBe(before);
    expect(existsSync(join(server.project, "offered.txt"))).toBe(false);
  });

  test("AGT-3: goes on in the background with --detach, is told something with viv say, and gets it when viv interrupt ends its turn", async () => {
    const id = await detached();
    expect(await type("tasks")).toMatchObject({ code: 0, out: expect.stringMatching(/running, .*write begun\.txt yes/) as string });
    const said = await type("say", id.slice(0, 14), "write told.txt yes", "--after-turn");
    expect(said).toMatchObject({ code: 0, out: expect.stringContaining("It is kept") as string });
    expect(await type("interrupt", id)).toMatchObject({ code: 0, out: expect.stringContaining("its turn is being ended") as string });
    const { outcome, sandbox } = await lab.ended(id);
    expect(outcome).toBe("done");
    expect((await server.sh(sandbox ?? "", "cat told.txt")).stdout).toBe("yes\n");
    expect(await type("say", id, "Too late.")).toMatchObject({
      code: 3,
      err: expect.stringMatching(/takes no messages.*--from/s) as string,
    });
  });

  test("AGT-3: ends with viv interrupt --stop, and its work is kept", async () => {
    const id = await detached();
    expect(await type("interrupt", id, "--stop")).toMatchObject({ code: 0, out: expect.stringContaining("its work is kept") as string });
    const { outcome, experiment } = await lab.ended(id);
    expect(outcome).toBe("cancelled");
    const { attempts } = await server.client.call("inspectExperiment", { experiment: experiment ?? "" });
    expect(attempts).toMatchObject([{ diff: { files: 1 }, snapshot: expect.any(String) as string }]);
  });
});
