/** Real programs on their way out: each fetches from a server of the test, by the proxy's variables or without them. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { CommandResult } from "../../src/schema/command.ts";
import { GitHttp } from "../support/git-http.ts";
import { TestResolver } from "../support/origins.ts";
import { TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const PLAIN = "unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY all_proxy ALL_PROXY NODE_USE_ENV_PROXY;";

describe("programs inside", needs("root", "git"), () => {
  let place: string;
  let resolver: TestResolver;
  let web: Server;
  let git: GitHttp;
  let server: TestServer;
  let box: string;
  let port: number;
  let gitPort: number;
  /** Files by host and path. */
  const files = new Map<string, Buffer | string>();
  const run = (line: string): Promise<CommandResult> =>
    server.sh(box, `cd /tmp && PATH=${dirname(process.execPath)}:$PATH; ${line}`, { user: "root" });

  beforeAll(async () => {
    place = mkdtempSync(join(tmpdir(), "viv-programs-"));
    resolver = await TestResolver.open();
    for (const name of ["web.test", "npm.test", "pypi.test", "apt.test"]) resolver.names.set(name, ["127.0.0.2"]);
    resolver.names.set("git.test", ["127.0.0.1"]);
    web = createServer(serve).listen(0, "127.0.0.2");
    await once(web, "listening");
    port = (web.address() as AddressInfo).port;
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
    server = await TestServer.start({ config: { network: rules, expose: [dirname(process.execPath)] } });
    box = (await server.create()).id;
  });
  afterAll(async () => {
    web.close();
    web.closeAllConnections();
    await git?.close();
    resolver.close();
    await server?.remove();
    rmSync(place, { recursive: true, force: true });
  });

  function serve(request: IncomingMessage, response: ServerResponse): void {
    const host = (request.headers.host ?? "").split(":")[0] ?? "";
    const found = files.get(host + decodeURIComponent((request.url ?? "").split("?")[0] ?? ""));
    if (found === undefined) response.writeHead(404).end();
    else response.writeHead(200, request.url?.endsWith("/") === true ? { "content-type": "text/html" } : {}).end(found);
  }

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
    const tarball = packNpm(place);
    const integrity = `sha512-${createHash("sha512").update(tarball).digest("base64")}`;
    const version = { name: "demo", version: "1.0.0", dist: { tarball: `http://npm.test:${port}/demo/-/demo-1.0.0.tgz`, integrity } };
    files.set("npm.test/demo", JSON.stringify({ name: "demo", "dist-tags": { latest: "1.0.0" }, versions: { "1.0.0": version } }));
    files.set("npm.test/demo/-/demo-1.0.0.tgz", tarball);
    const line = `mkdir -p app && cd app && echo '{}' > package.json && npm install --no-audit --no-fund --registry http://npm.test:${port}/ demo 2>&1 && node -p 'require("demo")'`;
    const { stdout } = await run(line);
    expect(stdout.trim().split("\n").at(-1)).toBe("from the registry");
  });

  test("pip installs a package", async (context) => {
    if ((await run("python3 -m pip --version")).end?.exitCode !== 0) context.skip("pip is not installed");
    const wheel = packWheel(place);
    files.set("pypi.test/simple/demo/", `<a href="/demo-1.0-py3-none-any.whl">demo-1.0-py3-none-any.whl</a>`);
    files.set("pypi.test/demo-1.0-py3-none-any.whl", wheel);
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
});

function makeRepository(place: string): void {
  const work = join(place, "work");
  mkdirSync(work);
  writeFileSync(join(work, "file"), "committed\n");
  const run = (...args: string[]): Buffer =>
    execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@example.com", ...args], { cwd: work });
  run("init", "-q", ".");
  run("add", ".");
  run("commit", "-qm", "first");
  execFileSync("git", ["clone", "-q", "--bare", work, join(place, "repository.git")]);
}

function packNpm(place: string): Buffer {
  const folder = join(place, "npm", "package");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "demo", version: "1.0.0", main: "index.js" }));
  writeFileSync(join(folder, "index.js"), `module.exports = "from the registry";`);
  return execFileSync("tar", ["-cz", "-C", join(place, "npm"), "package"]);
}

function packWheel(place: string): Buffer {
  const folder = join(place, "wheel");
  const info = join(folder, "demo-1.0.dist-info");
  mkdirSync(info, { recursive: true });
  writeFileSync(join(folder, "demo.py"), `said = "from the index"\n`);
  writeFileSync(join(info, "METADATA"), "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n");
  writeFileSync(join(info, "WHEEL"), "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n");
  writeFileSync(
    join(info, "RECORD"),
    "demo.py,,\ndemo-1.0.dist-info/METADATA,,\ndemo-1.0.dist-info/WHEEL,,\ndemo-1.0.dist-info/RECORD,,\n",
  );
  const file = join(place, "demo.whl");
  execFileSync("python3", ["-c", "import shutil,sys; shutil.make_archive(sys.argv[1], 'zip', sys.argv[2])", file, folder]);
  return readFileSync(`${file}.zip`);
}

function packDeb(place: string): { name: string; deb: Buffer; index: string } {
  const folder = join(place, "deb");
  mkdirSync(join(folder, "DEBIAN"), { recursive: true });
  const control =
    "Package: viv-demo\nVersion: 1.0\nArchitecture: all\nMaintainer: test <test@example.com>\nDescription: from the archive\n";
  writeFileSync(join(folder, "DEBIAN", "control"), control);
  execFileSync("dpkg-deb", ["--build", "--root-owner-group", folder, place], { stdio: "pipe" });
  const name = readdirSync(place).find((entry) => entry.endsWith(".deb")) ?? "";
  const deb = readFileSync(join(place, name));
  const hash = createHash("sha256").update(deb).digest("hex");
  return { name, deb, index: `${control}Filename: ./${name}\nSize: ${deb.length}\nSHA256: ${hash}\n\n` };
}
