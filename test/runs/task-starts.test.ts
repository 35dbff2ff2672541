/** Tasks that begin elsewhere than in a project of this machine, and what agents leave for later. */
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { BacklogTask } from "../../src/base/schema/backlog.ts";
import { GitHttp } from "../support/git-http.ts";
import { makeRepositories } from "../support/git-repositories.ts";
import { TestResolver } from "../support/origins.ts";
import { TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { startViv, viv } from "../support/viv.ts";

describe("a task", needs("root", "git", "curl"), () => {
  let place: string;
  let git: GitHttp;
  let resolver: TestResolver;
  let server: TestServer;

  beforeAll(async () => {
    place = mkdtempSync(join(tmpdir(), "viv-starts-"));
    makeRepositories(place);
    git = await GitHttp.open(place);
    resolver = await TestResolver.open();
    resolver.names.set("git.test", ["127.0.0.1"]);
    server = await TestServer.start({
      config: {
        // An agent that takes its task for a line of the shell.
        agents: { line: { protocol: "command", command: ["sh", "-c", "{task}"] } },
        network: { private: [{ host: "git.test", ports: [git.port] }], resolvers: [resolver.address] },
      },
    });
  });
  afterAll(async () => {
    await server?.remove();
    resolver?.close();
    await git?.close();
    rmSync(place, { recursive: true, force: true });
  });

  interface Told {
    readonly outcome: string;
    readonly verdict: string;
    readonly sandbox: string;
    readonly change: { readonly files: number };
  }
  /** Beside this process, which serves the repository. */
  async function task(...words: string[]): Promise<{ code: number; out: string; err: string }> {
    const child = startViv(server, ["task", ...words, "--agent", "line"], { cwd: server.project });
    child.stdin.end();
    const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close") as Promise<[number]>]);
    return { code, out, err };
  }
  async function done(...words: string[]): Promise<{ code: number; told: Told }> {
    const { code, out } = await task(...words, "--json");
    return { code, told: JSON.parse(out) as Told };
  }
  const address = (): string => `http://git.test:${git.port}/app.git`;

  test("CLONE-8: begins from a git repository at a ref, and is proven there", async () => {
    const { code, told } = await done("cat file > seen && pwd >> seen", "--git", address(), "--ref", "v1", "--check", "grep -q one seen");
    expect([code, told]).toMatchObject([0, { outcome: "done", verdict: "passed", change: { files: 1 } }]);
    const fields = ["id", "experiment", "sandbox", "agent", "state", "outcome", "reason", "verdict", "cost", "change", "promotion"];
    expect(Object.keys(told)).toEqual(fields);
    expect((await server.sh(told.sandbox, "cat seen; git log --format=%s")).stdout).toBe("one\n/workspace\nfirst\n");
    expect((await server.client.call("inspectSandbox", { sandbox: told.sandbox })).start).toMatchObject({ from: "git", ref: "v1" });
  });

  test("CLONE-8: whose repository or ref is not there is told at once, and leaves nothing", async () => {
    const before = (await server.client.call("listRuns", { all: true })).runs.length;
    const wrong = await task("true", "--git", address(), "--ref", "no-such");
    expect([wrong.code, wrong.err]).toMatchObject([2, expect.stringContaining("no-such") as string]);
    expect((await server.client.call("listRuns", { all: true })).runs).toHaveLength(before);
  });

  test("BOX-12: begins from an empty workspace on a read-only system, as user 1000", async () => {
    const { code, told } = await done(
      "id -u > who; ls -A >> who; touch /etc/x || echo closed >> who",
      "--empty",
      "--check",
      "grep -q closed who",
    );
    expect([code, told]).toMatchObject([0, { outcome: "done", verdict: "passed" }]);
    expect((await server.sh(told.sandbox, "cat who")).stdout).toBe("1000\nwho\nclosed\n");
  });

  test("begins from one place, and is not promoted where there is no project", async () => {
    const say = (...words: string[]) => task("true", ...words);
    expect(await say("--empty", "--git", address())).toMatchObject({
      code: 2,
      err: expect.stringContaining("exclude each other") as string,
    });
    expect(await say("--empty", "--from", "x")).toMatchObject({ code: 2, err: expect.stringContaining("exclude each other") as string });
    expect(await say("--ref", "v1")).toMatchObject({ code: 2, err: expect.stringContaining("need --git") as string });
    for (const start of [["--empty"], ["--git", address()]])
      expect((await say(...start, "--promote", "--check", "true")).err).toContain("no project on this machine to promote into");
  });

  test("COORD-6: leaves tasks for later, which `viv tasks` shows until they are done", async () => {
    const leave = (title: string, priority: string) =>
      `curl -sSf -d '{"title":"${title}","priority":"${priority}"}' http://localhost:4097/sandbox/self/tasks`;
    expect((await done(`${leave("Rename it", "medium")} && ${leave("Drop the table", "high")}`, "--check", "true")).told.outcome).toBe(
      "done",
    );
    const shown = viv(server, ["tasks"]).out;
    expect(shown).toMatch(
      /Left for later by agents:\nID +WHEN +PRIORITY +BY +TASK\ntsk.* high .* Drop the table\ntsk.* medium .* Rename it\n/,
    );
    const { backlog } = JSON.parse(viv(server, ["tasks", "--json"]).out) as { backlog: BacklogTask[] };
    expect(backlog).toMatchObject([{ title: "Drop the table", project: server.project }, { title: "Rename it" }]);
    expect(viv(server, ["tasks", "--done", backlog[0]?.id.slice(0, 9) ?? ""])).toMatchObject({ code: 0 });
    expect(viv(server, ["tasks"]).out).not.toMatch(/high .* Drop the table/);
    expect(viv(server, ["tasks", "--project", "/elsewhere"]).out).not.toContain("Left for later");
    expect(viv(server, ["tasks", "--done", "tsk000"])).toMatchObject({ code: 2 });
  });
});
