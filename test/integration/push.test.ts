/** PROM-6: one branch goes to a real remote, by path and over HTTP, with the user's own login, and nothing is forced. */
import { execFile, execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { git as readOnly } from "../../src/machine/capture/git.ts";
import { ProjectGit } from "../../src/work/promotion/project-git.ts";
import { push, type PushRequest } from "../../src/work/promotion/push.ts";
import { BranchLab, createBranch } from "../support/branch-lab.ts";
import { GitHttp } from "../support/git-http.ts";

let lab: BranchLab;
let remote: string;

beforeEach(async () => {
  lab = new BranchLab();
  remote = join(lab.place, "remotes/owner/repo.git");
  mkdirSync(remote, { recursive: true });
  lab.gitIn(remote, "init", "-q", "--bare");
  lab.write({ a: "one\n" });
  const parent = lab.commit("first");
  lab.git("remote", "add", "origin", remote);
  lab.git("push", "-q", "origin", "main");
  await createBranch(lab.request(parent, [lab.change("a", "one\n", "two\n")]));
});
afterEach(() => lab.close());

const request = (more: Partial<PushRequest> = {}): PushRequest => ({
  project: lab.project,
  remote: "origin",
  branch: "fix/it",
  variables: lab.variables,
  ...more,
});
const onRemote = (): string => lab.gitIn(remote, "for-each-ref", "--format=%(refname:short) %(objectname)");

describe("a push to a path", () => {
  test("PROM-6: the branch and nothing else arrives, and a second push changes nothing", async () => {
    lab.git("tag", "-a", "v1", "-m", "v1", "fix/it");
    lab.git("config", "push.followTags", "true");
    lab.git("config", "remote.origin.push", "+refs/heads/*:refs/heads/*");
    lab.git("branch", "private");
    const before = lab.fingerprint();
    const commit = lab.git("rev-parse", "fix/it");
    expect(await push(request())).toMatchObject({ address: remote, branch: "fix/it", commit, unchanged: false });
    expect(onRemote()).toBe(`fix/it ${commit}\nmain ${lab.git("rev-parse", "main")}`);
    expect(await push(request())).toMatchObject({ unchanged: true });
    expect(await push(request({ remote: `file://${remote}` }))).toMatchObject({ unchanged: true });
    const tracking = (row: string): boolean => row.includes("refs/remotes/");
    expect(lab.fingerprint().filter((row) => !tracking(row))).toEqual(before.filter((row) => !tracking(row)));
  });

  test("PROM-6: a remote that has other commits on the branch is told, and keeps them", async () => {
    const other = join(lab.place, "other");
    lab.gitIn(lab.place, "clone", "-q", remote, other);
    lab.gitIn(other, "commit", "-q", "--allow-empty", "-m", "theirs");
    lab.gitIn(other, "push", "-q", "origin", "HEAD:refs/heads/fix/it");
    const before = onRemote();
    // Settings that would force it do not.
    lab.git("config", "remote.origin.push", "+refs/heads/*:refs/heads/*");
    await expect(push(request())).rejects.toMatchObject({
      code: "push_refused",
      message: expect.stringContaining("nothing is forced") as string,
    });
    expect(onRemote()).toBe(before);
    lab.git("push", "-q", "--force", "origin", "fix/it");
    expect(onRemote()).not.toBe(before);
  });

  test("PROM-6: what the remote's own rules refuse is told with their words", async () => {
    writeFileSync(join(remote, "hooks/pre-receive"), "#!/bin/sh\necho no branches today >&2\nexit 1\n");
    chmodSync(join(remote, "hooks/pre-receive"), 0o755);
    await expect(push(request())).rejects.toMatchObject({
      code: "push_refused",
      message: expect.stringContaining("pre-receive hook declined") as string,
    });
  });

  test("HG-01 PROM-6: hooks of the repository don't run on a push; with plain git they do", async () => {
    const marker = join(lab.place, "marker");
    for (const hook of ["pre-push", "reference-transaction"]) {
      writeFileSync(join(lab.project, ".git/hooks", hook), `#!/bin/sh\ntouch ${marker}\n`);
      chmodSync(join(lab.project, ".git/hooks", hook), 0o755);
    }
    await push(request());
    expect(existsSync(marker)).toBe(false);
    lab.git("push", "-q", "origin", "HEAD:refs/heads/plain");
    expect(existsSync(marker)).toBe(true);
  });

  test("HG-08 PROM-6: an address that runs a program is refused, also where the settings hide it", async () => {
    const marker = join(lab.place, "marker");
    const evil = `ext::sh -c touch% ${marker}`;
    await expect(push(request({ remote: evil }))).rejects.toMatchObject({ code: "invalid_input" });
    lab.git("config", "protocol.ext.allow", "always");
    lab.git("config", "remote.evil.url", evil);
    await expect(push(request({ remote: "evil" }))).rejects.toMatchObject({ code: "invalid_input" });
    lab.git("config", `url.${evil}.insteadOf`, "https://rewritten.example/");
    await expect(push(request({ remote: "https://rewritten.example/" }))).rejects.toMatchObject({ code: "push_refused" });
    lab.git("config", "remote.helper.url", remote);
    lab.git("config", "remote.helper.vcs", "ext");
    await push(request({ remote: "helper" })).catch(() => undefined);
    expect(existsSync(marker)).toBe(false);
    expect(() => lab.git("push", "evil", "main")).toThrow();
    expect(existsSync(marker)).toBe(true);
  });

  test("HG-06 PROM-6: a branch that git would read as something else is refused", async () => {
    for (const branch of ["--output=x", "-c", "a..b", "@{-1}", "a\nb", "main:other", "+main", ":main"])
      await expect(push(request({ branch })), branch).rejects.toMatchObject({ code: "invalid_input" });
  });

  test("PROM-6: a branch or remote that is not there is told", async () => {
    await expect(push(request({ branch: "none" }))).rejects.toMatchObject({ code: "not_found" });
    await expect(push(request({ remote: "none" }))).rejects.toMatchObject({ code: "not_found" });
    await expect(push(request({ remote: join(lab.place, "nowhere") }))).rejects.toMatchObject({ code: "push_refused" });
    await expect(push(request({ project: lab.home }))).rejects.toMatchObject({ code: "not_found" });
  });
});

describe("HG-01 HG-08: settings of the project's own repository", () => {
  let marker: string;
  let evil: string;
  beforeEach(() => {
    marker = join(lab.place, "marker");
    evil = join(lab.place, "evil");
    writeFileSync(evil, `#!/bin/sh\ntouch ${marker}\nexit 1\n`);
    chmodSync(evil, 0o755);
    lab.git("remote", "add", "far", "git@far.example:owner/repo.git");
  });
  /** The push as the server does it; then, as a control, with plain git, which runs the program. */
  const whoRunsIt = async (to: string): Promise<string[]> => {
    await push(request({ remote: to })).catch(() => undefined);
    const server = existsSync(marker) ? ["server"] : [];
    expect(() => lab.git("push", to, "fix/it")).toThrow();
    return [...server, ...(existsSync(marker) ? ["plain git"] : [])];
  };

  test.each([
    ["remote.origin.receivepack", "origin"],
    ["core.sshCommand", "far"],
  ])("run nothing on the host: %s", async (key, to) => {
    lab.git("config", key, evil);
    expect(await whoRunsIt(to)).toEqual(["plain git"]);
  });

  test("run nothing by an include, nor by the settings of the checkout", async () => {
    writeFileSync(join(lab.place, "included"), `[remote "origin"]\n\treceivepack = ${evil}\n`);
    lab.git("config", "include.path", join(lab.place, "included"));
    expect(await whoRunsIt("origin")).toEqual(["plain git"]);
    lab.git("config", "--unset", "include.path");
    rmSync(marker);
    lab.git("config", "extensions.worktreeConfig", "true");
    lab.git("config", "--worktree", "remote.origin.receivepack", evil);
    expect(await whoRunsIt("origin")).toEqual(["plain git"]);
  });

  test("lead nowhere else: neither an address that is rewritten nor a helper for logins counts", async () => {
    const other = join(lab.place, "other.git");
    lab.gitIn(lab.place, "init", "-q", "--bare", other);
    lab.git("config", `url.${other}.insteadOf`, remote);
    lab.git("config", `url.${other}.pushInsteadOf`, remote);
    expect(await push(request())).toMatchObject({ address: remote });
    expect(onRemote()).toContain("fix/it");
    lab.git("push", "-q", "origin", "fix/it");
    expect(lab.gitIn(other, "for-each-ref")).toContain("fix/it");
    const server = await GitHttp.open(join(lab.place, "remotes"), "ada:s3cret-password");
    lab.git("remote", "add", "http", `${server.url}/owner/repo.git`);
    lab.git("config", "credential.helper", `!touch ${marker}; echo username=x; echo password=y;`);
    try {
      await expect(push(request({ remote: "http" }))).rejects.toMatchObject({ code: "push_refused" });
      expect(existsSync(marker)).toBe(false);
      // The far end answers in this process: the control must not wait for it.
      await promisify(execFile)("git", ["push", "http", "fix/it"], { cwd: lab.project, env: lab.environment }).catch(() => undefined);
      expect(existsSync(marker)).toBe(true);
    } finally {
      await server.close();
    }
  });

  test("do not make a folder of the project the far end, whose hooks would run", async () => {
    lab.gitIn(lab.project, "init", "-q", "--bare", "planted.git");
    writeFileSync(join(lab.project, "planted.git/hooks/pre-receive"), `#!/bin/sh\ntouch ${marker}\n`);
    chmodSync(join(lab.project, "planted.git/hooks/pre-receive"), 0o755);
    // Behind a link, `..` leads elsewhere than the text says.
    mkdirSync(join(lab.project, "deep/er"), { recursive: true });
    symlinkSync("deep/er", join(lab.project, "link"));
    const addresses = ["./planted.git", "planted.git", join(lab.project, "planted.git"), `file://${lab.project}/planted.git`];
    const walked = ["link/../../planted.git", "link/../../planted", `file://${lab.project}/link/../../planted.git`];
    for (const address of [...addresses, ...walked]) {
      lab.git("config", "remote.planted.url", address);
      await expect(push(request({ remote: "planted" })), address).rejects.toMatchObject({ code: "invalid_input" });
    }
    expect(existsSync(marker)).toBe(false);
    lab.git("push", "-q", "planted", "fix/it");
    expect(existsSync(marker)).toBe(true);
  });

  test("run nothing where a partial clone lacks what git looks for", async () => {
    const blob = lab.git("rev-parse", "main:a");
    rmSync(join(lab.project, ".git/objects", blob.slice(0, 2), blob.slice(2)));
    lab.git("config", "core.repositoryFormatVersion", "1");
    lab.git("config", "extensions.partialClone", "origin");
    lab.git("config", "remote.origin.promisor", "true");
    lab.git("config", "remote.origin.uploadpack", evil);
    expect((await readOnly(lab.project, ["cat-file", "-t", blob])).code).not.toBe(0);
    expect((await (await ProjectGit.open(lab.project)).ask(["cat-file", "-t", blob])).code).not.toBe(0);
    expect(existsSync(marker)).toBe(false);
    expect(() => lab.git("cat-file", "-t", blob)).toThrow();
    expect(existsSync(marker)).toBe(true);
  });

  test("are not needed: the user's own settings count, also those that they keep for this folder", async () => {
    const moved = join(lab.place, "moved.git");
    lab.gitIn(lab.place, "init", "-q", "--bare", moved);
    writeFileSync(join(lab.home, "work"), `[url "${moved}"]\n\tinsteadOf = ${remote}\n`);
    execFileSync("git", ["config", "--global", `includeIf.gitdir:${lab.project}/.path`, join(lab.home, "work")], { env: lab.environment });
    expect(await push(request())).toMatchObject({ address: moved, unchanged: false });
    expect(lab.gitIn(moved, "for-each-ref")).toContain("fix/it");
  });
});

test("PROM-6: a push over ssh goes with the user's own ssh command, agent and home", async () => {
  const said = join(lab.place, "said");
  const ssh = join(lab.place, "ssh");
  // The far end is this machine: the last argument is what ssh would run there.
  writeFileSync(
    ssh,
    `#!/bin/sh\necho "$* HOME=$HOME SSH_AUTH_SOCK=$SSH_AUTH_SOCK SECRET=$SECRET" > ${said}\nfor last; do :; done\nexec sh -c "$last"\n`,
  );
  chmodSync(ssh, 0o755);
  execFileSync("git", ["config", "--global", "core.sshCommand", ssh], { env: lab.environment });
  lab.git("remote", "add", "far", `git@far.example:${remote}`);
  const variables = { ...lab.variables, SSH_AUTH_SOCK: "/run/agent", SECRET: "kept" };
  expect(await push(request({ remote: "far", variables }))).toMatchObject({ address: `git@far.example:${remote}`, unchanged: false });
  expect(onRemote()).toContain("fix/it");
  expect(readFileSync(said, "utf8")).toContain(`HOME=${lab.home} SSH_AUTH_SOCK=/run/agent SECRET=\n`);
});

describe("a push over HTTP", () => {
  let server: GitHttp;
  afterEach(() => server.close());

  test("PROM-6: it goes with the login that the user's credential helper knows", async () => {
    server = await GitHttp.open(join(lab.place, "remotes"), "ada:s3cret-password");
    const url = `${server.url}/owner/repo.git`;
    lab.git("remote", "add", "http", url);
    const refused = push(request({ remote: "http" }));
    await expect(refused).rejects.toMatchObject({ code: "push_refused", message: expect.stringContaining("login") as string });
    execFileSync("git", ["config", "--global", "credential.helper", "store"], { env: lab.environment });
    writeFileSync(
      join(lab.home, ".git-credentials"),
      `${url.replace("http://", "http://ada:s3cret-password@")}\n`.replace("/owner/repo.git", ""),
    );
    expect(await push(request({ remote: "http" }))).toMatchObject({ address: url, unchanged: false });
    expect(onRemote()).toContain("fix/it");
    expect(server.logins.length).toBeGreaterThan(0);
  });

  test("PROM-6: a login in the address is in no answer and no error", async () => {
    server = await GitHttp.open(join(lab.place, "remotes"), "ada:s3cret-password");
    const url = `${server.url.replace("http://", "http://ada:s3cret-password@")}/owner/repo.git`;
    const answer = await push(request({ remote: url }));
    expect(JSON.stringify(answer)).not.toContain("s3cret");
    const failed = await push(request({ remote: url.replace("repo.git", "none.git") })).catch((error: unknown) => error as Error);
    expect(failed).toMatchObject({ code: "push_refused" });
    expect(`${(failed as Error).message} ${JSON.stringify(failed)} ${(failed as Error).stack}`).not.toContain("s3cret");
  });

  test("PROM-6: a remote that never answers is given up, and can be cancelled", async () => {
    server = await GitHttp.open(join(lab.place, "remotes"));
    const silent = createServer();
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}/owner/repo.git`;
    try {
      await expect(push(request({ remote: url, timeoutMs: 500 }))).rejects.toMatchObject({ code: "timeout" });
      const controller = new AbortController();
      const connected = new Promise((resolve) => silent.once("connection", resolve));
      const waiting = push(request({ remote: url, signal: controller.signal }));
      await connected;
      controller.abort();
      await expect(waiting).rejects.toMatchObject({ code: "cancelled" });
    } finally {
      silent.close();
    }
  });
});
