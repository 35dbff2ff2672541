/** PROM-6: pull requests on a forge that speaks GitHub's API; the token stays where it belongs. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openPullRequest, type PullRequestOptions } from "../../src/work/promotion/forge.ts";
import { push } from "../../src/work/promotion/push.ts";
import { repositoryOf } from "../../src/work/promotion/remote.ts";
import { BranchLab, createBranch } from "../support/branch-lab.ts";
import { TestForge } from "../support/forge.ts";
import { GitHttp } from "../support/git-http.ts";

let forge: TestForge;
let branches: string[];

beforeEach(async () => {
  branches = ["fix/it"];
  forge = await TestForge.open("owner/repo", (branch) => branches.includes(branch));
});
afterEach(() => forge.close());

const options = (more: Partial<PullRequestOptions> = {}): PullRequestOptions => ({
  forge: { url: forge.url, token: forge.token },
  repository: { host: "127.0.0.1", owner: "owner", name: "repo" },
  branch: "fix/it",
  title: "Fix it",
  body: "What changed",
  ...more,
});

describe("a pull request", () => {
  test("PROM-6: a change becomes a branch, is pushed over HTTP and proposed, with the token outside of git", async () => {
    const lab = new BranchLab();
    const remote = join(lab.place, "remotes/owner/repo.git");
    mkdirSync(remote, { recursive: true });
    const server = await GitHttp.open(join(lab.place, "remotes"));
    try {
      lab.gitIn(remote, "init", "-q", "--bare");
      lab.write({ a: "one\n" });
      const parent = lab.commit("first");
      lab.git("remote", "add", "origin", `${server.url}/owner/repo.git`);
      branches = [];
      await createBranch(lab.request(parent, [lab.change("a", "one\n", "two\n")]));
      const { address, branch } = await push({ project: lab.project, remote: "origin", branch: "fix/it", variables: lab.variables });
      branches = lab.gitIn(remote, "for-each-ref", "--format=%(refname:short)", "refs/heads").split("\n");
      const repository = repositoryOf(address);
      if (repository === undefined) throw new Error("no repository");
      const pull = await openPullRequest(options({ repository, branch }));
      expect(pull).toEqual({ number: 1, url: "https://forge.example/owner/repo/pull/1", base: "main", created: true });
      expect(forge.pulls).toMatchObject([{ title: "Fix it", head: { ref: "fix/it" }, base: { ref: "main" } }]);
      expect(server.logins).toEqual([]);
    } finally {
      await server.close();
      lab.close();
    }
  });

  test("PROM-6: the open one of a branch is found, also if another program opens it at the same moment", async () => {
    const [first, second] = [await openPullRequest(options()), await openPullRequest(options())];
    expect([first.created, second.created, second.number]).toEqual([true, false, 1]);
    let looked = 0;
    forge.instead = (method, path) => (method === "GET" && path.endsWith("/pulls") && (looked += 1) === 1 ? [200, []] : undefined);
    expect(await openPullRequest(options())).toMatchObject({ number: 1, created: false });
    expect(forge.requests.filter((each) => each.startsWith("POST"))).toHaveLength(2);
  });

  test("PROM-6: the base branch can be given, and is not asked for then", async () => {
    expect(await openPullRequest(options({ base: "develop" }))).toMatchObject({ base: "develop" });
    expect(forge.requests).not.toContain("GET /api/v3/repos/owner/repo");
    await expect(openPullRequest(options({ base: "fix/it" }))).rejects.toMatchObject({ code: "invalid_input" });
  });

  test("PROM-6: what the forge refuses is told with its words and what to do", async () => {
    const failing = async (more: Partial<PullRequestOptions>, message: RegExp, remedy: RegExp): Promise<void> => {
      await expect(openPullRequest(options(more))).rejects.toMatchObject({
        code: "forge_failed",
        message: expect.stringMatching(message) as string,
        remedy: expect.stringMatching(remedy) as string,
      });
    };
    await failing({ forge: { url: forge.url, token: "wrong" } }, /401: Bad credentials\.$/, /new one/);
    await failing({ repository: { host: "127.0.0.1", owner: "owner", name: "none" } }, /404: Not Found/, /may not see/);
    await failing({ branch: "unpushed" }, /422: Validation Failed; head is invalid/, /pushed/);
    forge.instead = () => [403, { message: "Resource not accessible" }];
    await failing({}, /403/, /write pull requests/);
    forge.instead = () => [500, "<html>"];
    await failing({}, /500/, /./);
    forge.instead = () => [200, { default_branch: 7 }];
    await failing({}, /no default_branch/, /./);
  });
});

describe("the forge's token", () => {
  test("PROM-6: it is in no error, even where the forge says it back", async () => {
    forge.instead = () => [403, { message: `token ${forge.token} is bad\u001b[31m` }];
    const error = await openPullRequest(options()).catch((caught: unknown) => caught as Error);
    expect(error).toMatchObject({ code: "forge_failed" });
    expect(`${(error as Error).message} ${JSON.stringify(error)} ${(error as Error).stack}`).not.toContain(forge.token);
    expect((error as Error).message).toContain("[token]");
    expect((error as Error).message).not.toContain("\u001b");
  });

  test("PROM-6: it does not follow a redirect", async () => {
    const seen: (string | undefined)[] = [];
    const other = createServer((request, response) => {
      seen.push(request.headers.authorization);
      response.end("{}");
    });
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    try {
      const location = `http://127.0.0.1:${(other.address() as AddressInfo).port}/`;
      forge.instead = () => [302, {}, { location }];
      await expect(openPullRequest(options())).rejects.toMatchObject({ code: "forge_failed" });
      expect(seen).toEqual([]);
    } finally {
      other.close();
    }
  });

  test.each([
    "http://forge.example/api",
    "ftp://forge.example",
    "https://user:pass@forge.example",
    "nothing",
    "file:///etc",
    "https://forge.example/?a=b",
  ])("PROM-6: it is not sent to %s", async (url) => {
    await expect(openPullRequest(options({ forge: { url, token: forge.token } }))).rejects.toMatchObject({ code: "config_invalid" });
  });

  test("PROM-6: it is not used for a repository of another host", async () => {
    const repository = { host: "elsewhere.example", owner: "owner", name: "repo" };
    await expect(openPullRequest(options({ repository }))).rejects.toMatchObject({ code: "config_invalid" });
    expect(forge.requests).toEqual([]);
    const named = { url: forge.url, token: forge.token, host: "elsewhere.example" };
    expect(await openPullRequest(options({ repository, forge: named }))).toMatchObject({ created: true });
  });

  test("PROM-6: an endless answer is cut off, and a forge that is not there is told", async () => {
    forge.instead = () => [200, { default_branch: "x".repeat(5 * 1024 ** 2) }];
    await expect(openPullRequest(options())).rejects.toThrow(/too long/);
    const gone = options();
    await forge.close();
    await expect(openPullRequest(gone)).rejects.toMatchObject({
      code: "forge_failed",
      message: expect.stringContaining("reached") as string,
    });
    forge = await TestForge.open("owner/repo", () => false);
  });

  test("PROM-6: a token of several lines is refused before anything is sent", async () => {
    await expect(openPullRequest(options({ forge: { url: forge.url, token: "a\r\nx: y" } }))).rejects.toMatchObject({
      code: "config_invalid",
    });
    expect(forge.requests).toEqual([]);
  });
});
