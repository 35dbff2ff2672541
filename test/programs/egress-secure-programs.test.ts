/** Real programs over TLS: each verifies the certificate of a server of the test, through the proxy or dialling by name. */
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { request as plainRequest, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { CommandResult } from "../../src/base/schema/command.ts";
import { GitHttp } from "../support/git-http.ts";
import { TestResolver } from "../support/origins.ts";
import { makeRepository, publishNpm, publishWheel, serveFile, type Files } from "../support/packages.ts";
import { certificate } from "../support/certificates.ts";
import { TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const PLAIN = "unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY all_proxy ALL_PROXY NODE_USE_ENV_PROXY;";

const HOSTS = ["web.test", "npm.test", "pypi.test", "git.test"] as const;

describe("programs inside, over TLS", needs("root", "git", "openssl", "curl", "wget", "python3"), () => {
  let place: string;
  let resolver: TestResolver;
  let web: Server;
  let git: GitHttp;
  let server: TestServer;
  let box: string;
  let port: number;
  let authority: string;
  const files: Files = new Map();
  const run = (line: string): Promise<CommandResult> =>
    server.sh(box, `cd /tmp && CA=${authority}; PATH=${dirname(process.execPath)}:$PATH; ${line}`, { user: "root" });

  beforeAll(async () => {
    place = mkdtempSync(join(tmpdir(), "viv-secure-"));
    resolver = await TestResolver.open();
    for (const name of HOSTS) resolver.names.set(name, ["127.0.0.2"]);
    const own = certificate(place, ...HOSTS);
    makeRepository(place);
    git = await GitHttp.open(place);
    web = createServer(own, serve).listen(0, "127.0.0.2");
    await once(web, "listening");
    port = (web.address() as AddressInfo).port;
    files.set("web.test/file", "content of the file\n");
    const network = { private: [{ host: "*.test", ports: [port] }], resolvers: [resolver.address] };
    server = await TestServer.start({ config: { network, expose: [dirname(process.execPath)] } });
    authority = join(server.project, "ca.crt");
    writeFileSync(authority, own.cert);
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
    if (host === "git.test") return toGit(request, response);
    serveFile(files, request, response);
  }

  function toGit(request: IncomingMessage, response: ServerResponse): void {
    const sent = plainRequest(git.url + (request.url ?? ""), { method: request.method ?? "GET", headers: request.headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    request.pipe(sent);
  }

  test.each([
    ["curl", "curl -sS --cacert $CA URL"],
    ["wget", "wget -qO- --ca-certificate=$CA URL"],
    ["Node's fetch", `NODE_EXTRA_CA_CERTS=$CA node -e 'fetch("URL").then((r) => r.text()).then((t) => process.stdout.write(t))'`],
    ["Node's https", `NODE_EXTRA_CA_CERTS=$CA node -e 'require("https").get("URL", (r) => r.pipe(process.stdout))'`],
    ["Python's urllib", `SSL_CERT_FILE=$CA python3 -c 'import urllib.request as u; print(u.urlopen("URL").read().decode(), end="")'`],
  ])("%s fetches a file, with the proxy's variables and without, and no other host's", async (_, line) => {
    const program = line.replace("URL", `https://web.test:${port}/file`);
    for (const before of ["", PLAIN]) {
      const { stdout, stderr } = await run(before + program);
      expect(stdout, before + stderr).toBe("content of the file\n");
    }
    const denied = await run(program.replace("web.test", "denied.example"));
    expect(denied.stdout).not.toContain("content of the file");
    expect(denied.end?.exitCode).not.toBe(0);
  });

  test("git clones, fetches and pushes over https", async () => {
    const secure = "git -c http.sslCAInfo=$CA -c user.name=t -c user.email=t@example.com";
    const clone = await run(`${secure} clone -q https://git.test:${port}/repository.git one && cat one/file`);
    expect(clone.stdout, clone.stderr).toBe("committed\n");
    const push = await run(
      `cd one && echo more > more && git add more && ${secure} commit -qm second && ${secure} push -q 2>&1; ${PLAIN} ${secure} fetch -q && git log --format=%s origin/HEAD`,
    );
    expect(push.stdout, push.stderr).toBe("second\nfirst\n");
  });

  test("npm installs a package over https", async () => {
    publishNpm(files, place, `https://npm.test:${port}`);
    const line = `mkdir -p app && cd app && echo '{}' > package.json && npm install --no-audit --no-fund --cafile $CA --registry https://npm.test:${port}/ demo 2>&1 && node -p 'require("demo")'`;
    const { stdout } = await run(line);
    expect(stdout.trim().split("\n").at(-1), stdout).toBe("from the registry");
  });

  test("pip installs a package over https", async (context) => {
    if ((await run("python3 -m pip --version")).end?.exitCode !== 0) context.skip("pip is not installed");
    publishWheel(files, place, "pypi.test");
    const { stdout, stderr } = await run(
      `python3 -m pip install -q --no-cache-dir --disable-pip-version-check --cert $CA --index-url https://pypi.test:${port}/simple --target wheels demo && PYTHONPATH=wheels python3 -c 'import demo; print(demo.said)'`,
    );
    expect(stdout, stderr).toBe("from the index\n");
  });

  test(
    "PX-16: a browser's greeting with an encrypted name beside the right one goes through",
    { ...needs("chromium"), timeout: 60_000 },
    async () => {
      const line = `chromium --headless --no-sandbox --disable-gpu --user-data-dir=/tmp/profile --ignore-certificate-errors --proxy-server=http://127.0.0.1:4098 --dump-dom https://web.test:${port}/file 2>/dev/null`;
      expect((await run(line)).stdout).toContain("content of the file");
    },
  );
});
