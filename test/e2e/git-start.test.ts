/** CLONE-8: a git repository as the start of a sandbox, cloned inside walls, with the token outside. */
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { InputOf, OutputOf } from "../../src/base/schema/contracts.ts";
import { CANARY, scanFor } from "../support/canaries.ts";
import { certificate, type Certificate } from "../support/certificates.ts";
import { GitHttp } from "../support/git-http.ts";
import { makeRepositories } from "../support/git-repositories.ts";
import { traces } from "../support/machine.ts";
import { TestResolver } from "../support/origins.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { startViv, viv } from "../support/viv.ts";

const TOKEN = `${CANARY}-token`;
const MEGABYTE = 1024 ** 2;

describe("a sandbox from a git repository", needs("root", "git", "openssl"), () => {
  let place: string;
  let own: Certificate;
  let resolver: TestResolver;
  let open: GitHttp;
  let closed: GitHttp;
  /** Answers nothing, or sends the client elsewhere. */
  let odd: Server;
  const heard: string[] = [];
  let server: TestServer;
  let commits: { first: string; second: string };

  const url = (from: GitHttp, name: string): string => `${from === closed ? "https" : "http"}://git.test:${from.port}/${name}`;
  const create = (input: Partial<InputOf<"createSandbox">>): Promise<OutputOf<"createSandbox">> =>
    server.client.call("createSandbox", input);
  const clone = (address: string, ref?: string, more: Partial<InputOf<"createSandbox">> = {}): Promise<OutputOf<"createSandbox">> =>
    create({ git: { url: address, ...(ref === undefined ? {} : { ref }) }, user: "0", ...more });

  beforeAll(async () => {
    place = mkdtempSync(join(tmpdir(), "viv-git-"));
    own = certificate(place, "git.test");
    commits = makeRepositories(place);
    resolver = await TestResolver.open();
    for (const name of ["git.test", "other.test", "odd.test"]) resolver.names.set(name, ["127.0.0.1"]);
    open = await GitHttp.open(place);
    closed = await GitHttp.open(place, `x-access-token:${TOKEN}`, own);
    odd = createServer((request, response) => {
      heard.push(`${request.headers.host ?? ""}${request.url ?? ""}`);
      if (request.url?.startsWith("/away") !== true) return;
      response.writeHead(302, { location: `http://other.test:${oddPort()}/app.git/info/refs?service=git-upload-pack` }).end();
    }).listen(0, "127.0.0.1");
    await once(odd, "listening");
    const ports = [open.port, closed.port, oddPort()];
    server = await TestServer.start({
      config: {
        spares: false,
        network: {
          private: ["git.test", "odd.test"].map((host) => ({ host, ports })),
          resolvers: [resolver.address],
        },
      },
      env: { NODE_EXTRA_CA_CERTS: own.file },
    });
  });

  function oddPort(): number {
    return (odd.address() as AddressInfo).port;
  }

  afterAll(async () => {
    odd?.close();
    odd?.closeAllConnections();
    for (const one of [open, closed]) await one?.close();
    resolver?.close();
    await server?.remove();
    rmSync(place, { recursive: true, force: true });
  });

  /** No sandbox, process, volume or log is left of what failed. */
  async function expectNothing(): Promise<void> {
    expect((await server.client.call("listSandboxes", {})).sandboxes).toEqual([]);
    expect(traces(server)).toMatchObject({ runs: [], volumes: [], logs: [] });
  }

  afterEach(async () => {
    for (const { id } of (await server.client.call("listSandboxes", {})).sandboxes)
      await server.client.call("removeSandbox", { sandbox: id });
    await expectNothing();
  });

  test("CLONE-8: has the repository at /workspace, with its history, and no change of its own", async () => {
    const box = await clone(url(open, "app.git"));
    expect(box.start).toEqual({ from: "git", url: url(open, "app.git"), ref: null, commit: commits.second });
    const look = "pwd; cat file; git rev-list --count HEAD; git status --porcelain; git remote get-url origin; git branch --show-current";
    expect((await server.sh(box.id, look)).stdout).toBe(`/workspace\ntwo\n2\n${url(open, "app.git")}\nmain\n`);
    expect((await server.client.call("diffSandbox", { sandbox: box.id })).entries).toEqual([]);
    expect((await server.sh(box.id, "cat .git/config")).stdout).not.toMatch(/credential|hooksPath/);
  });

  test("CLONE-8: starts from a branch, a tag or a commit, as the user who was asked for", async () => {
    for (const [ref, content] of [
      ["feature/x", "two\n"],
      ["v1", "one\n"],
      [commits.first, "one\n"],
    ] as const) {
      const box = await clone(url(open, "app.git"), ref, { user: "1234" });
      expect((await server.sh(box.id, "id -u; stat -c %u . file .git; cat file")).stdout).toBe(`1234\n1234\n1234\n1234\n${content}`);
      expect(box.start).toMatchObject({ ref, commit: content === "one\n" ? commits.first : commits.second });
    }
  });

  test("diff, snapshot, rollback, fork, stop, start and status work against the commit that was cloned", async () => {
    const box = await clone(url(open, "app.git"));
    await server.sh(box.id, "echo three > file; echo x > a.log");
    await server.client.call("createSnapshot", { sandbox: box.id, name: "three" });
    await server.sh(box.id, "echo four > file; git -c user.name=a -c user.email=a@b commit -qam four");
    const { entries } = await server.client.call("diffSandbox", { sandbox: box.id, promotable: true });
    expect(entries.map(({ path }) => path)).toEqual(["file"]);
    const [fork] = (await server.client.call("forkSandbox", { sandbox: box.id })).sandboxes;
    expect(fork?.start).toEqual(box.start);
    await server.client.call("rollback", { sandbox: box.id, snapshot: "three" });
    expect((await server.sh(box.id, "cat file; git rev-parse HEAD")).stdout).toBe(`three\n${commits.second}\n`);
    await server.client.call("stopSandbox", { sandbox: fork?.id ?? "" });
    await server.client.call("startSandbox", { sandbox: fork?.id ?? "" });
    expect((await server.sh(fork?.id ?? "", "pwd; cat file")).stdout).toBe("/workspace\nfour\n");
    expect(await server.client.call("sandboxStatus", { sandbox: box.id })).toMatchObject({ stale: false, changedInside: 2 });
    for (const name of ["promote", "refreshSandbox"] as const)
      await expect(server.client.call(name, { sandbox: box.id })).rejects.toMatchObject({ code: "no_project" });
  });

  test("CLONE-8: a private repository is cloned with a token that stays outside", async () => {
    const address = url(closed, "app.git");
    // Without a secret nothing opens the TLS, and the certificate is that of a test.
    const env = { PATH: "/usr/bin:/bin", GIT_SSL_NO_VERIFY: "1" };
    await expect(clone(address, undefined, { env })).rejects.toMatchObject({
      code: "login_needed",
      message: `git.test:${closed.port} wants a login for ${address}, and no secret is kept for that host.`,
    });
    await expectNothing();
    const bound = { secret: "git", hosts: [`git.test:${closed.port}`], projects: null };
    await server.client.call("setSecret", { ...bound, value: "wrong-token-1234" });
    await expect(clone(address)).rejects.toMatchObject({
      code: "login_needed",
      message: `git.test:${closed.port} refused the secret git for ${address}.`,
    });
    await expectNothing();
    await server.client.call("setSecret", { ...bound, value: TOKEN });
    const box = await clone(address);
    expect((await server.sh(box.id, "cat file")).stdout).toBe("two\n");
    expect(closed.logins.at(-1)).toBe(`Basic ${Buffer.from(`x-access-token:${TOKEN}`).toString("base64")}`);
    const found = await server.sh(box.id, scanFor(["/workspace", "/root", "/tmp", "/run", "/etc"]));
    expect(found.stdout).toBe("");
    await server.client.call("removeSecret", { secret: "git" });
  });

  test("a secret of other projects is used when a person says so, and the clone waits for that", async () => {
    await server.client.call("setSecret", { secret: "git", hosts: [`git.test:${closed.port}`], projects: [server.project], value: TOKEN });
    const making = clone(url(closed, "app.git"));
    const waiting = await eventually(
      async () => (await server.client.call("listApprovals", {})).approvals,
      (approvals) => approvals.length > 0,
    );
    expect(waiting[0]).toMatchObject({ kind: "secret" });
    await server.client.call("answerApproval", { approval: waiting[0]?.id ?? "", answer: "once", approver: server.approver() });
    expect((await server.sh((await making).id, "cat file")).stdout).toBe("two\n");
    await server.client.call("removeSecret", { secret: "git" });
  });

  test("the clone reaches the host of the repository alone, and the sandbox reaches it, too", async () => {
    const away = `http://odd.test:${oddPort()}/away/app.git`;
    await expect(clone(away)).rejects.toMatchObject({
      code: "clone_failed",
      message: `The rules of the network refused the clone of ${away}, which reaches odd.test:${oddPort()} alone.`,
    });
    expect(heard.filter((line) => line.startsWith("odd.test"))).not.toEqual([]);
    expect(resolver.asked).not.toContain("other.test");
    const box = await clone(url(open, "app.git"), undefined, { network: "allow-list" });
    expect((await server.sh(box.id, "git fetch -q && echo fetched")).stdout).toBe("fetched\n");
    const off = await clone(url(open, "app.git"), undefined, { network: "off" });
    expect((await server.sh(off.id, "cat file; git fetch -q && echo fetched")).stdout).toBe("two\n");
  });

  test("a ref that is not there, no repository, an empty one, one with submodules: one sentence each", async () => {
    for (const ref of ["nothing", "0".repeat(40)])
      await expect(clone(url(open, "app.git"), ref)).rejects.toMatchObject({
        code: "ref_not_found",
        message: `${url(open, "app.git")} has no branch, tag or commit ${ref}.`,
      });
    await expect(clone(url(open, "none.git"))).rejects.toMatchObject({
      code: "clone_failed",
      message: expect.stringContaining("has no repository at"),
    });
    await expect(clone(`http://git.test:1/app.git`)).rejects.toMatchObject({ code: "clone_failed" });
    await expectNothing();
    const empty = await clone(url(open, "empty.git"));
    expect(empty).toMatchObject({ start: { commit: null }, notes: [expect.stringContaining("no commit")] });
    const modules = await clone(url(open, "modules.git"));
    expect(modules.notes).toEqual([expect.stringContaining("submodules")]);
    expect((await server.sh(modules.id, "ls -A m")).stdout).toBe("");
  });

  test("addresses and refs that git would take for something else are refused before anything starts", async () => {
    const addresses = [
      "file:///etc",
      "/etc",
      "ssh://git@git.test/app.git",
      "git@git.test:app.git",
      "git://git.test/app.git",
      "ext::sh -c touch% /tmp/x",
      "--upload-pack=touch /tmp/x",
      "https://me:secret-word@git.test/app.git",
      `https://ghp_${"a".repeat(36)}@git.test/app.git`,
      "https://git.test/",
      "https://git.test/a b",
    ];
    for (const address of addresses) await expect(clone(address), address).rejects.toMatchObject({ code: "invalid_input" });
    for (const ref of ["--upload-pack=x", "-b", "a..b", "a b", "main@{1}", "a\nb"])
      await expect(clone(url(open, "app.git"), ref), ref).rejects.toMatchObject({ code: "invalid_input" });
    await expectNothing();
  });

  test("a server that never answers, and a caller that goes away, leave nothing", async () => {
    const silent = `http://odd.test:${oddPort()}/silent.git`;
    const waiting = create({ git: { url: silent, timeoutMs: 1500 }, user: "0" });
    await expect(waiting).rejects.toMatchObject({ code: "timeout", message: `The clone of ${silent} was not done after 2 s.` });
    await expectNothing();
    const gone = new AbortController();
    const left = server.client.call("createSandbox", { git: { url: silent }, user: "0" }, gone.signal).catch(() => "gone");
    await eventually(
      () => heard.length,
      (count) => count > 0 && traces(server).runs.length > 0,
    );
    gone.abort();
    expect(await left).toBe("gone");
    await eventually(
      async () => (await server.client.call("listSandboxes", {})).sandboxes.length + traces(server).volumes.length,
      (count) => count === 0,
    );
  });

  test("a repository that is larger than the disk of the sandbox leaves nothing", async () => {
    const large = clone(url(open, "large.git"), undefined, { limits: { diskBytes: 48 * MEGABYTE } });
    await expect(large).rejects.toMatchObject({
      code: "too_large",
      message: `${url(open, "large.git")} does not fit on a disk of 48 MiB.`,
    });
  });

  for (const [point, visits] of [
    ["create.row", 1],
    ["create.running", 1],
    ["clone.made", 1],
    ["clone.frozen", 1],
    ["remove.volume", 1],
    ["create.row", 2],
    ["create.launch", 2],
    ["create.running", 2],
  ] as const) {
    test(`F-01: a server killed at ${point}, visit ${visits}, leaves one sandbox or none`, async () => {
      const input = { git: { url: url(open, "app.git") }, user: "0", idempotencyKey: `${point}-${visits}` };
      await server.arm(point, visits);
      await expect(create(input)).rejects.toMatchObject({ code: "server_unreachable" });
      await server.died();
      await server.up();
      const { sandboxes } = await server.client.call("listSandboxes", {});
      expect(sandboxes.length).toBeLessThanOrEqual(1);
      expect(traces(server).runs).toEqual(sandboxes.map(({ id }) => id));
      const box = await create(input);
      expect((await server.client.call("listSandboxes", {})).sandboxes.map(({ id }) => id)).toEqual([box.id]);
      expect((await server.sh(box.id, "cat file; git status --porcelain")).stdout).toBe("two\n");
    });
  }

  test("what a repository says of hooks, filters and programs does nothing outside its walls", async () => {
    const marker = join(server.place, "marker");
    const hostile = [
      `git config core.fsmonitor 'touch ${marker}; false'`,
      `git config filter.evil.clean 'touch ${marker}; cat'`,
      `git config filter.evil.smudge 'touch ${marker}; cat'`,
      `git config core.hooksPath /workspace/hooks`,
      `git config diff.external 'touch ${marker}'`,
      `mkdir -p hooks && printf '#!/bin/sh\ntouch ${marker}\n' > hooks/post-checkout && chmod +x hooks/post-checkout`,
      `echo '* filter=evil' > .gitattributes`,
      `echo changed > file`,
      `rm -rf link && ln -s /etc link`,
    ];
    const box = await clone(url(open, "app.git"));
    expect((await server.sh(box.id, hostile.join(" && "))).end?.exitCode).toBe(0);
    const { client } = server;
    await client.call("diffSandbox", { sandbox: box.id, promotable: true });
    await client.call("diffSandbox", { sandbox: box.id, stat: true });
    await client.call("sandboxStatus", { sandbox: box.id });
    await client.call("staleness", { sandbox: box.id });
    await client.call("createSnapshot", { sandbox: box.id, name: "hostile" });
    await client.call("forkSandbox", { sandbox: box.id });
    await client.call("rollback", { sandbox: box.id, snapshot: "hostile" });
    expect(viv(server, ["diff", box.name, "--patch"]).out).toContain("+changed");
    expect(existsSync(marker)).toBe(false);
    // The same settings do run where git reads them: inside, and outside by a person's own hand.
    await server.sh(box.id, `mkdir -p ${server.place}; git status`);
    expect((await server.sh(box.id, `ls ${marker}`)).stdout).toBe(`${marker}\n`);
    expect(existsSync(marker)).toBe(false);
    const copy = join(place, "copy");
    expect(viv(server, ["cp", `${box.name}:/workspace`, copy]).code).toBe(0);
    execFileSync("git", ["-c", "safe.directory=*", "status"], { cwd: copy, stdio: "pipe" });
    expect(existsSync(marker)).toBe(true);
    rmSync(marker);
  });

  /** Beside this process, which serves the repositories. */
  async function vivBeside(...words: readonly string[]): Promise<{ code: number | null; out: string; err: string }> {
    const child = startViv(server, words);
    child.stdin.end();
    const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "exit") as Promise<[number | null]>]);
    return { code, out, err };
  }

  test("attempts of an experiment start from it, and the best is chosen and kept", async () => {
    const address = url(open, "app.git");
    const words = ["echo three > file", "echo four > file", "--git", address, "--check", "grep -q four file", "--keep", "winner", "--json"];
    const { code, out } = await vivBeside("try", ...words);
    const found = JSON.parse(out) as OutputOf<"inspectExperiment">;
    expect({ code, state: found.state, winner: found.winner }).toEqual({ code: 0, state: "done", winner: 2 });
    expect(found.attempts[1]).toMatchObject({ diff: { files: 1 }, verified: { passed: true } });
    const shown = (await vivBeside("experiment", found.id)).out;
    expect(shown).toContain(address);
    expect(shown).not.toContain("viv promote");
    expect((await vivBeside("promote", found.id)).err).toContain("[no_project]");
    expect((await vivBeside("try", "true", "--git", address, "--check", "true", "--promote")).err).toContain("[no_project]");
    await server.client.call("removeExperiment", { experiment: found.id });
  });

  test("the command line makes, runs, lists and explains it", async () => {
    const address = url(open, "app.git");
    expect(await vivBeside("create", "--git", address, "--ref", "v1", "--name", "cloned")).toMatchObject({ code: 0, out: "cloned\n" });
    expect(viv(server, ["exec", "cloned", "--", "cat", "file"]).out).toBe("one\n");
    const detail = viv(server, ["inspect", "cloned"]).out;
    expect(detail).toContain(address);
    expect(detail).toContain(commits.first);
    const refused = viv(server, ["promote", "cloned"]);
    expect(refused.err).toContain(`was cloned from ${address}: there is no project on this machine to promote into.`);
    expect(await vivBeside("run", "--git", address, "--", "cat", "file")).toMatchObject({ code: 0, out: "two\n" });
    expect(viv(server, ["create", "--git", address, "--empty"])).toMatchObject({
      code: 2,
      err: expect.stringContaining("exclude each other"),
    });
    expect(viv(server, ["create", "--ref", "v1"])).toMatchObject({ code: 2, err: expect.stringContaining("need --git") });
  });
});

describe("a sandbox from a git repository, of an ordinary user", needs("root", "git"), () => {
  const uid = 61_235;
  let place: string;
  let open: GitHttp;
  let resolver: TestResolver;
  let server: TestServer;

  beforeAll(async () => {
    place = mkdtempSync(join(tmpdir(), "viv-git-"));
    makeRepositories(place);
    open = await GitHttp.open(place);
    resolver = await TestResolver.open();
    resolver.names.set("git.test", ["127.0.0.1"]);
    server = await TestServer.start({
      uid,
      config: { spares: false, network: { private: [{ host: "git.test", ports: [open.port] }], resolvers: [resolver.address] } },
    });
  });

  afterAll(async () => {
    await open?.close();
    resolver?.close();
    await server?.remove();
    rmSync(place, { recursive: true, force: true });
  });

  test("CLONE-8: is cloned, changed and compared as for root", async () => {
    const box = await server.client.call("createSandbox", { git: { url: `http://git.test:${open.port}/app.git`, ref: "v1" } });
    expect((await server.sh(box.id, "pwd; cat file; id -u; echo new > file")).stdout).toBe(`/workspace\none\n${uid}\n`);
    const { entries } = await server.client.call("diffSandbox", { sandbox: box.id });
    expect(entries.map(({ path }) => path)).toEqual(["file"]);
  });
});
