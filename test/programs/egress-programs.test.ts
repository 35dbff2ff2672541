/** Real programs on their way out: each fetches from a server of the test, by the proxy's variables or without them. */
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { createReadStream, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { homedir, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { CommandResult } from "../../src/base/schema/command.ts";
import { GitHttp } from "../support/git-http.ts";
import { TestResolver } from "../support/origins.ts";
import { makeRepository, packDeb, publishCrate, publishNpm, publishWheel, serveFile, type Files } from "../support/packages.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs, programPath } from "../support/skip.ts";
import { viv } from "../support/viv.ts";

const PLAIN = "unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY all_proxy ALL_PROXY NODE_USE_ENV_PROXY;";

/** Where rustup puts cargo and its compilers. */
const RUST = [".cargo", ".rustup"].map((name) => join(homedir(), name));

describe("programs inside", needs("root", "git", "curl", "wget", "python3"), () => {
  let place: string;
  let resolver: TestResolver;
  let web: Server;
  /** It is not open. */
  let corp: Server;
  let ownPort: number;
  let git: GitHttp;
  let server: TestServer;
  let box: string;
  let port: number;
  let gitPort: number;
  /** Files by host and path. */
  const files: Files = new Map();
  const run = (line: string): Promise<CommandResult> =>
    server.sh(box, `cd /tmp && PATH=${dirname(process.execPath)}:$PATH; ${line}`, { user: "root" });

  beforeAll(async () => {
    place = mkdtempSync(join(tmpdir(), "viv-programs-"));
    resolver = await TestResolver.open();
    for (const name of ["web.test", "npm.test", "pypi.test", "apt.test", "crates.test"]) resolver.names.set(name, ["127.0.0.2"]);
    resolver.names.set("git.test", ["127.0.0.1"]);
    web = createServer((request, response) => serveFile(files, request, response)).listen(0, "127.0.0.2");
    await once(web, "listening");
    port = (web.address() as AddressInfo).port;
    for (const name of ["corp.internal", "asked.internal", "unnamed.internal"]) resolver.names.set(name, ["127.0.0.3"]);
    corp = createServer((request, response) => serveFile(files, request, response)).listen(0, "127.0.0.3");
    await once(corp, "listening");
    ownPort = (corp.address() as AddressInfo).port;
    files.set("web.test/file", "content of the file\n");
    makeRepository(place);
    git = await GitHttp.open(place);
    gitPort = Number(new URL(git.url).port);
    const rules = {
      mode: "allow-list",
      private: [
        { host: "*.test", ports: [port] },
        { host: "git.test", ports: [gitPort] },
      ],
      resolvers: [resolver.address],
    };
    server = await TestServer.start({
      config: { network: rules, expose: [dirname(process.execPath), ...RUST.filter((folder) => existsSync(folder))] },
    });
    box = (await server.create()).id;
  });
  afterAll(async () => {
    web.close();
    web.closeAllConnections();
    corp.close();
    corp.closeAllConnections();
    await git?.close();
    resolver.close();
    await server?.remove();
    rmSync(place, { recursive: true, force: true });
  });

  test.each([
    ["curl", "curl -sS URL"],
    ["wget", "wget -qO- URL"],
    ["Node's http", `node -e 'require("http").get("URL", (r) => r.pipe(process.stdout))'`],
    ["Python's urllib", `python3 -c 'import urllib.request as u; print(u.urlopen("URL").read().decode(), end="")'`],
  ])("%s fetches a file, with the proxy's variables and without", async (_, line) => {
    const program = line.replace("URL", `http://web.test:${port}/file`);
    for (const before of ["", PLAIN]) expect((await run(before + program)).stdout, before).toBe("content of the file\n");
    const denied = await run(program.replace("web.test", "denied.example"));
    expect(denied.stdout).not.toContain("content of the file");
  });

  test("Node's fetch, which asks for a tunnel even for plain HTTP, has one on port 80 and does without it elsewhere", async () => {
    const fetched = (host: string): string =>
      `node -e 'fetch("http://${host}/file").then((r) => r.text()).then((t) => process.stdout.write(t))'`;
    expect((await run(PLAIN + fetched(`web.test:${port}`))).stdout).toBe("content of the file\n");
    expect((await run(fetched("denied.example"))).stdout).not.toContain("content");
    expect((await run(`curl -sS -p -x http://127.0.0.1:4098 http://web.test:${port}/file`)).end?.exitCode).not.toBe(0);
  });

  test("git clones and fetches over http, also what is named as git@host:", async () => {
    const clone = await run(`git clone -q http://git.test:${gitPort}/repository.git one && cat one/file`);
    expect(clone.stdout, clone.stderr).toBe("committed\n");
    const again = await run(`cd one && ${PLAIN} git fetch -q && git log --format=%s origin/HEAD`);
    expect(again.stdout, again.stderr).toBe("first\n");
    expect((await run("git ls-remote --get-url git@github.com:owner/name.git")).stdout).toBe("https://github.com/owner/name.git\n");
    expect((await run("git clone -q http://denied.example/repository.git two")).stderr).toContain("403");
  });

  test("npm installs a package", async () => {
    publishNpm(files, place, `http://npm.test:${port}`);
    const line = `mkdir -p app && cd app && echo '{}' > package.json && npm install --no-audit --no-fund --registry http://npm.test:${port}/ demo 2>&1 && node -p 'require("demo")'`;
    const { stdout } = await run(line);
    expect(stdout.trim().split("\n").at(-1)).toBe("from the registry");
  });

  const SENTENCE = "10.255.255.1 is not a public address. Outside, `viv network allow-private 10.255.255.1:8080` opens it for this project";
  test.each([
    ["npm, plain", `npm view --fetch-retries=0 --registry http://10.255.255.1:8080/ demo`],
    ["npm, over TLS", `npm view --fetch-retries=0 --registry https://10.255.255.1:8080/ demo`],
    [
      "pip, plain, which tells it with -vv alone",
      "python3 -m pip download -vv --retries 0 --trusted-host 10.255.255.1 -i http://10.255.255.1:8080/simple demo",
    ],
    ["pip, over TLS", "python3 -m pip download --retries 1 -i https://10.255.255.1:8080/simple demo"],
    [
      "apt",
      "echo 'deb [trusted=yes] http://10.255.255.1:8080/ ./' > one.list && apt-get -o Dir::Etc::SourceList=/tmp/one.list -o Dir::Etc::SourceParts=- update",
    ],
  ])("%s shows a denial as a sentence that says what to do", async (_, line) => {
    const { stdout, stderr } = await run(line);
    const shown = `${stdout}${stderr}`.replaceAll(/\s+/g, " ");
    expect(shown).toContain(SENTENCE);
    expect(shown).not.toContain("[object Object]");
  });

  test("npm installs from a private registry once a person has opened it, without a restart, until it is taken back", async () => {
    publishNpm(files, place, `http://corp.internal:${ownPort}`);
    const install = `rm -rf corp && mkdir corp && cd corp && echo '{}' > package.json && npm install --fetch-retries=0 --no-audit --no-fund --registry http://corp.internal:${ownPort}/ demo 2>&1 && node -p 'require("demo")'`;
    const env = { VIV_APPROVER_TOKEN: server.approver() };
    const allow = (where: string, as: Record<string, string> = env) =>
      viv(server, ["network", "allow-private", where], { cwd: server.project, env: as });
    expect((await run(install)).end?.exitCode).not.toBe(0);
    expect(allow(`corp.internal:${ownPort}`, {})).toMatchObject({ code: 4, err: expect.stringContaining("Only a person on a terminal") });
    for (const metadata of ["169.254.169.254:80", "metadata.google.internal:80"])
      expect(allow(metadata)).toMatchObject({ code: 2, err: expect.stringContaining("no sandbox reaches") });
    expect(allow(`corp.internal:${ownPort}`)).toMatchObject({ code: 0, out: expect.stringContaining(`reach corp.internal:${ownPort}`) });
    const installed = await run(install);
    expect(installed.end?.exitCode, installed.stdout).toBe(0);
    const other = await run(`curl -sS http://corp.internal:${port}/`);
    expect(other.stdout, "another port of it").toContain('"code"');
    const { rules } = await server.client.call("listRules", {});
    expect(rules).toMatchObject([{ project: server.project, rule: `private corp.internal:${ownPort}` }]);
    await server.client.call("forgetRule", { rule: rules[0]?.id ?? "" });
    await eventually(
      async () => (await run(`curl -sS http://corp.internal:${ownPort}/demo`)).stdout,
      (shown) => shown.includes('"code"'),
    );
  });

  test("a private registry that the project's .npmrc names is a question with its reason, and goes on with the answer", async () => {
    publishNpm(files, place, `http://asked.internal:${ownPort}`);
    const settings = join(server.project, ".npmrc");
    writeFileSync(settings, `registry=http://asked.internal:${ownPort}/\n`);
    const install = `rm -rf asked && mkdir asked && cd asked && echo '{}' > package.json && npm install --fetch-retries=0 --no-audit --no-fund --registry http://asked.internal:${ownPort}/ demo 2>&1`;
    const { id } = await server.create({ network: "public" });
    const inside = (line: string) => server.sh(id, `cd /tmp && PATH=${dirname(process.execPath)}:$PATH; ${line}`, { user: "root" });
    const installing = inside(install);
    const [asked] = await eventually(
      async () => (await server.client.call("listApprovals", {})).approvals,
      (waiting) => waiting.length > 0,
    );
    expect(asked).toMatchObject({ kind: "private", target: `asked.internal:${ownPort}`, reason: expect.stringContaining(settings) });
    await server.client.call("answerApproval", { approval: asked?.id ?? "", answer: "always", approver: server.approver() });
    const { end, stdout } = await installing;
    expect(end?.exitCode, stdout).toBe(0);
    expect((await server.client.call("inspectNetwork", { sandbox: id })).rules.private).toMatchObject([{ host: "asked.internal" }]);
    // No person is asked about a host that no settings name.
    expect((await inside(`curl -sS http://unnamed.internal:${ownPort}/`)).stdout).toContain('"code"');
    expect((await server.client.call("listApprovals", {})).approvals).toEqual([]);
  });

  test("pip installs a package", async (context) => {
    if ((await run("python3 -m pip --version")).end?.exitCode !== 0) context.skip("pip is not installed");
    publishWheel(files, place, "pypi.test");
    const index = `--index-url http://pypi.test:${port}/simple --trusted-host pypi.test`;
    const { stdout, stderr } = await run(
      `python3 -m pip install -q --no-cache-dir --disable-pip-version-check ${index} --target wheels demo && PYTHONPATH=wheels python3 -c 'import demo; print(demo.said)'`,
    );
    expect(stdout, stderr).toBe("from the index\n");
  });

  test("apt updates its lists and downloads a package", async (context) => {
    if (!existsSync("/usr/bin/apt-get") || !existsSync("/usr/bin/dpkg-deb")) context.skip("apt is not installed");
    const { name, deb, index } = packDeb(place);
    files.set(`apt.test/./${name}`, deb);
    files.set("apt.test/./Packages", index);
    const lists = "-o Dir::Etc::sourcelist=/tmp/sources.list -o Dir::Etc::sourceparts=- -o Dir::State::lists=/tmp/lists";
    const { stdout, stderr } = await run(
      `mkdir -p lists/partial && echo 'deb [trusted=yes] http://apt.test:${port}/ ./' > sources.list && apt-get ${lists} -q update 2>&1 && apt-get ${lists} -q download viv-demo 2>&1 && dpkg-deb -f viv-demo*.deb Description`,
    );
    expect(stdout.trim().split("\n").at(-1), stdout + stderr).toBe("from the archive");
  });

  test("cargo fetches a crate from a sparse registry", async (context) => {
    const rust = `export RUSTUP_HOME=${RUST[1]} PATH=${RUST[0]}/bin:$PATH;`;
    if ((await run(`${rust} cargo --version`)).end?.exitCode !== 0) context.skip("cargo is not installed");
    publishCrate(files, place, `http://crates.test:${port}`);
    const manifest = `[package]\\nname = "app"\\nversion = "1.0.0"\\nedition = "2021"\\n[dependencies]\\ndemo = { version = "1", registry = "own" }\\n`;
    const line = `${rust} mkdir -p crate/src && cd crate && touch src/lib.rs && printf '${manifest}' > Cargo.toml && export CARGO_HOME=/tmp/cargo CARGO_REGISTRIES_OWN_INDEX=sparse+http://crates.test:${port}/index/ && cargo fetch -q && ls /tmp/cargo/registry/src/*/`;
    const { stdout, stderr } = await run(line);
    expect(stdout, stderr).toContain("demo-1.0.0");
  });

  test("a sandbox without variables of the proxy reaches the same by names alone, and none is there", async () => {
    const { id } = await server.create({ networkVariables: false });
    const bare = `env | grep -iE "proxy|git_config|java" | wc -l; curl -s http://web.test:${port}/file; ${process.execPath} -e 'fetch("http://web.test:${port}/file").then((a) => a.text()).then((a) => process.stdout.write(a))'`;
    const { stdout, stderr } = await server.sh(id, bare);
    expect(stdout, stderr).toBe(`0\n${"content of the file\n".repeat(2)}`);
    await server.client.call("removeSandbox", { sandbox: id });
  });

  test("Java fetches a file by names alone, and says nothing about options", async (context) => {
    if ((await run("java --list-modules | grep -q jdk.compiler")).end?.exitCode !== 0) context.skip("no Java with a compiler is installed");
    const program = `public class Fetch { public static void main(String[] a) throws Exception { System.out.write(new java.net.URL(a[0]).openStream().readAllBytes()); System.out.flush(); } }`;
    const fetched = `java Fetch.java http://web.test:${port}/file`;
    const { stdout, stderr } = await run(`echo '${program}' > Fetch.java && ${fetched}`);
    expect({ stdout, stderr }).toEqual({ stdout: "content of the file\n", stderr: "" });
  });

  // Built outside, where Go keeps what it compiled of its HTTP library; without that it takes half a minute.
  test("Go fetches a file, with the proxy's variables and without", { ...needs("go"), timeout: 180_000 }, async () => {
    const program = `package main; import ("io"; "net/http"; "os"); func main() { r, e := http.Get(os.Args[1]); if e != nil { panic(e) }; io.Copy(os.Stdout, r.Body) }`;
    writeFileSync(join(place, "fetch.go"), program);
    execFileSync(programPath("go") ?? "", ["build", "-gcflags=all=-N -l", "-ldflags=-s -w", "-o", "fetch", "fetch.go"], {
      cwd: place,
      env: { ...process.env, CGO_ENABLED: "0", GOTOOLCHAIN: "local" },
    });
    await server.client.writeFile(box, "/tmp/fetch", createReadStream(join(place, "fetch")));
    const line = `chmod +x fetch && ./fetch http://web.test:${port}/file; ${PLAIN} ./fetch http://web.test:${port}/file`;
    const { stdout, stderr } = await run(line);
    expect(stdout, stderr).toBe("content of the file\n".repeat(2));
  });
});
