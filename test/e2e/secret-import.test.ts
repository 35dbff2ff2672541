/** NET-4: logins of a home folder are imported; real programs inside use their files as ever, and hold placeholders alone. */
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { request as requestPlain, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { homedir, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { CommandResult } from "../../src/base/schema/command.ts";
import { CANARY, scanFor } from "../support/canaries.ts";
import { certificate, type Certificate } from "../support/certificates.ts";
import { GitHttp } from "../support/git-http.ts";
import { TestResolver } from "../support/origins.ts";
import { makeRepository, publishCrate, publishNpm, publishWheel, serveFile } from "../support/packages.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { viv } from "../support/viv.ts";

/** Where rustup puts cargo and its compilers. */
const RUST = [".cargo", ".rustup"].map((name) => join(homedir(), name));
const HOSTS = ["npm.test", "npm-user.test", "pypi.test", "git.test", "api.test", "crates.test"];
const value = (host: string): string => `${CANARY}-${host}`;
const basic = (user: string, host: string): string => `Basic ${Buffer.from(`${user}:${value(host)}`).toString("base64")}`;

describe("imported logins", needs("root", "openssl", "git", "curl", "wget", "pip"), () => {
  let place: string;
  let own: Certificate;
  let home: string;
  let resolver: TestResolver;
  let git: GitHttp;
  let web: Server;
  let port: number;
  let server: TestServer;
  let box: string;
  /** Files by host and path. */
  const files = new Map<string, Buffer | string>();
  const heard: string[] = [];
  const run = (line: string): Promise<CommandResult> =>
    server.sh(box, `mkdir -p /tmp/work && cd /tmp/work && PATH=/usr/bin:/bin:${dirname(process.execPath)}:$PATH; ${line}`);

  beforeAll(async () => {
    place = mkdtempSync(join(tmpdir(), "viv-import-"));
    mkdirSync("/home", { recursive: true });
    home = mkdtempSync("/home/viv-test-");
    own = certificate(place, "import.test", ...HOSTS);
    resolver = await TestResolver.open();
    for (const host of HOSTS) resolver.names.set(host, ["127.0.0.2"]);
    makeRepository(place);
    git = await GitHttp.open(place, `me:${value("git.test")}`);
    web = createServer(own, serve).listen(0, "127.0.0.2");
    await once(web, "listening");
    port = (web.address() as AddressInfo).port;
    plant();
    server = await TestServer.start({
      config: {
        network: { mode: "allow-list", private: [{ host: "*.test", ports: [port] }], resolvers: [resolver.address] },
        expose: [dirname(process.execPath), ...RUST.filter((folder) => existsSync(folder))],
      },
      env: { HOME: home, NODE_EXTRA_CA_CERTS: own.file },
    });
  });
  afterAll(async () => {
    web.close();
    web.closeAllConnections();
    await git?.close();
    resolver.close();
    await server?.remove();
    for (const path of [place, home]) rmSync(path, { recursive: true, force: true });
  });

  /** Files as the programs themselves write them. */
  function plant(): void {
    const put = (name: string, content: string): void => {
      mkdirSync(dirname(join(home, name)), { recursive: true });
      writeFileSync(join(home, name), content, { mode: 0o600 });
    };
    const password = Buffer.from(value("npm-user.test")).toString("base64");
    put(
      ".npmrc",
      `registry=https://npm.test:${port}/\n//npm.test:${port}/:_authToken=${value("npm.test")}\n@scope:registry=https://npm-user.test:${port}/\n//npm-user.test:${port}/:username=me\n//npm-user.test:${port}/:_password=${password}\n`,
    );
    put(".netrc", `machine api.test login me password ${value("api.test")}\ndefault login x password ${CANARY}-default\n`);
    put(".config/pip/pip.conf", `[global]\nindex-url = https://me:${value("pypi.test")}@pypi.test:${port}/simple\n`);
    put(".git-credentials", `https://me:${value("git.test")}@git.test:${port}\nhttp://me:${CANARY}-plain@old.test\n`);
    // A user's own list of authorities: it vouches for the host of the test.
    put("authorities.pem", `${own.cert.toString()}\n${CANARY}-list\n`);
    put(".gitconfig", "[user]\n\tname = Someone\n[credential]\n\thelper = store\n");
    put(".cargo/credentials.toml", `[registries.mine]\ntoken = "${value("crates.test")}"\n[registries.lost]\ntoken = "${CANARY}-lost"\n`);
    put(
      ".cargo/config.toml",
      `[registry]\nglobal-credential-providers = ["cargo:token"]\n[registries.mine]\nindex = "sparse+https://crates.test:${port}/index/"\n`,
    );
  }

  /** Everything needs the login of its host. */
  function serve(request: IncomingMessage, response: ServerResponse): void {
    const host = (request.headers.host ?? "").split(":")[0] ?? "";
    const given = request.headers.authorization ?? "";
    heard.push(`${request.method} ${host} ${given}`);
    if (host === "git.test") return pass(request, response);
    const wanted: Readonly<Record<string, string>> = { "npm.test": `Bearer ${value(host)}`, "crates.test": value(host) };
    if (given !== (wanted[host] ?? basic("me", host)))
      return void response.writeHead(401, { "www-authenticate": 'Basic realm="test"' }).end();
    serveFile(files, request, response);
  }

  function pass(request: IncomingMessage, response: ServerResponse): void {
    const { method, url: path, headers } = request;
    const sent = requestPlain({ host: "127.0.0.1", port: new URL(git.url).port, method, path, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    request.pipe(sent);
  }

  test("NET-4, SC-10: the import shows what it found and where it goes, and never a value", async () => {
    const env = { HOME: home };
    const looked = viv(server, ["secret", "import", "--dry-run"], { env });
    expect(viv(server, ["secret", "ls"]).out).toContain("No secrets");
    const kept = viv(server, ["secret", "import", "--all-projects", "--json"], { env });
    const again = viv(server, ["secret", "import"], { env });
    const listed = viv(server, ["secret", "ls"]);
    const bad = viv(server, ["secret", "import", join(home, ".gitconfig")], { env });
    for (const { out, err } of [looked, kept, again, listed, bad]) {
      expect(out + err).not.toContain(CANARY);
      expect(out + err).not.toContain(Buffer.from(CANARY).toString("base64").slice(0, 20));
    }
    expect([looked.code, kept.code, again.code, bad.code]).toEqual([0, 0, 0, 2]);
    const { logins } = JSON.parse(kept.out) as {
      logins: { secret: string | null; host: string | null; state: string; reason: string | null }[];
    };
    expect(logins.map(({ secret, host, state }) => `${secret} ${host} ${state}`).toSorted()).toEqual(
      [
        `npm-npm.test npm.test:${port} new`,
        `npm-npm-user.test npm-user.test:${port} new`,
        "netrc-api.test api.test new",
        `pip-pypi.test pypi.test:${port} new`,
        `git-git.test git.test:${port} new`,
        `cargo-mine crates.test:${port} new`,
        "null null left out",
        "null null left out",
        "null null left out",
      ].toSorted(),
    );
    expect(again.out).toContain("unchanged");
    // The file names no port, and this host has another one than usual; an import leaves that as it is.
    viv(server, ["secret", "set", "netrc-api.test", "--host", `api.test:${port}`], { input: value("api.test") });
    expect(viv(server, ["secret", "import"], { env }).out).not.toContain("replaced");
    expect(listed.out).toContain("npm-user.test");
    box = (await server.create({ env: { HOME: home, PATH: "/usr/bin:/bin", SSL_CERT_FILE: join(home, "authorities.pem") } })).id;
  });

  test("NET-4, SC-01: the same files are there inside with placeholders, and no value is", async () => {
    const { stdout } = await run(
      "cat ~/.npmrc ~/.netrc ~/.config/pip/pip.conf ~/.git-credentials ~/.cargo/credentials.toml; stat -c %a ~/.netrc",
    );
    expect(stdout).toContain(`//npm.test:${port}/:_authToken=viv-secret-`);
    expect(stdout).toContain(`//npm-user.test:${port}/:username=me\n`);
    expect(stdout).toMatch(/machine api\.test login me password viv-secret-/);
    expect(stdout).toMatch(/https:\/\/me:viv-secret-[\w-]+@pypi\.test/);
    expect(stdout).toMatch(/https:\/\/me:viv-secret-[\w-]+@git\.test/);
    expect(stdout).toMatch(/\[registries\."mine"\]\ntoken = "viv-secret-[\w-]+"\n600\n$/);
    expect(stdout).not.toMatch(/default|old\.test|lost/);
    expect((await server.sh(box, scanFor([home, "/root", "/etc", "/tmp", "/run", server.project]), { user: "root" })).stdout).toBe("");
    // The same scan finds them outside.
    expect(execFileSync("sh", ["-c", scanFor([home])], { encoding: "utf8" })).toContain(".npmrc");
  });

  test("NET-4: curl logs in from .netrc, and without its placeholder the host says no", async () => {
    files.set("api.test/things", "from the api\n");
    const get = `https://api.test:${port}/things`;
    const { stdout, stderr } = await run(`curl -sS --netrc ${get}; curl -sS -o /dev/null -w '%{http_code}' -u me:wrong ${get}`);
    expect(stdout, stderr).toBe("from the api\n401");
    // Without the proxy's variables, and by SOCKS.
    const plain = await run(
      `unset https_proxy HTTPS_PROXY all_proxy ALL_PROXY; curl -sS --netrc ${get}; curl -sS -x socks5h://127.0.0.1:4098 --netrc ${get}`,
    );
    expect(plain.stdout, plain.stderr).toBe("from the api\nfrom the api\n");
  });

  test.each([
    [
      "Node's fetch",
      `node -e 'fetch("URL", { headers: { authorization: "Basic " + btoa("me:" + process.env.VIV_SECRET_NETRC_API_TEST) } }).then((r) => r.text()).then((t) => process.stdout.write(t))'`,
    ],
    [
      "Python's urllib",
      `python3 -c 'import base64,os,urllib.request as u; print(u.urlopen(u.Request("URL", headers={"Authorization": "Basic " + base64.b64encode(("me:" + os.environ["VIV_SECRET_NETRC_API_TEST"]).encode()).decode()})).read().decode(), end="")'`,
    ],
    [
      "Python's requests, which read .netrc by themselves",
      `python3 -c 'from pip._vendor import requests as r; print(r.get("URL").text, end="")'`,
    ],
    [
      "wget, by the machine's list",
      `wget -qO- --ca-certificate=$SSL_CERT_FILE --user=me --password=$VIV_SECRET_NETRC_API_TEST --auth-no-challenge URL`,
    ],
  ])("NET-4: %s trusts the authority and logs in", async (_, line) => {
    files.set("api.test/things", "from the api\n");
    const { stdout, stderr } = await run(line.replace("URL", `https://api.test:${port}/things`));
    expect(stdout, stderr).toBe("from the api\n");
  });

  test("NET-4: git clones and pushes over https with the login of .git-credentials", async () => {
    const address = `https://git.test:${port}/repository.git`;
    const { stdout, stderr } = await run(
      `git clone -q ${address} one && cd one && git -c user.email=a@b commit -q --allow-empty -m second && git push -q origin HEAD && git log -1 --format=%s origin/HEAD`,
    );
    expect(stdout, stderr).toBe("second\n");
    expect(git.logins).toContain(basic("me", "git.test"));
    // What was pushed has an entry: the method is visible here.
    const { effects } = await server.client.call("listEffects", { sandbox: box });
    expect(effects).toContainEqual(
      expect.objectContaining({ method: "POST", url: `${address}/git-receive-pack`, state: "answered", status: 200 }),
    );
  });

  test("NET-4: npm installs with a token, and with a user and password", async () => {
    for (const host of ["npm.test", "npm-user.test"]) publishNpm(files, place, `https://${host}:${port}`);
    const scoped = String(files.get("npm-user.test/demo")).replaceAll('"name":"demo"', '"name":"@scope/demo"');
    files.set("npm-user.test/@scope/demo", scoped);
    const { stdout } = await run(
      "mkdir -p app && cd app && echo '{}' > package.json && npm install --no-audit --no-fund demo @scope/demo 2>&1; ls -d node_modules/demo node_modules/@scope/demo",
    );
    expect(stdout).toMatch(/node_modules\/@scope\/demo\nnode_modules\/demo\n$|node_modules\/demo\nnode_modules\/@scope\/demo\n$/);
  });

  test("NET-4: pip installs with the login in its index", async () => {
    publishWheel(files, place, "pypi.test");
    const { stdout, stderr } = await run(
      "python3 -m pip install -q --no-cache-dir --disable-pip-version-check --target wheels demo && PYTHONPATH=wheels python3 -c 'import demo; print(demo.said)'",
    );
    expect(stdout, stderr).toBe("from the index\n");
  });

  test("NET-4: cargo fetches a crate from a registry that wants its token", async (context) => {
    const rust = `export RUSTUP_HOME=${RUST[1]} PATH=${RUST[0]}/bin:$PATH;`;
    if ((await run(`${rust} cargo --version`)).end?.exitCode !== 0) context.skip("cargo is not installed");
    publishCrate(files, place, `https://crates.test:${port}`);
    const config = { ...(JSON.parse(String(files.get("crates.test/index/config.json"))) as object), "auth-required": true };
    files.set("crates.test/index/config.json", JSON.stringify(config));
    const manifest = '[package]\\nname = "app"\\nversion = "0.1.0"\\n[dependencies]\\ndemo = { version = "1", registry = "mine" }\\n';
    const { stdout, stderr } = await run(
      `${rust} mkdir -p crate/src && cd crate && touch src/lib.rs && printf '${manifest}' > Cargo.toml && cargo fetch -q && ls ~/.cargo/registry/src/*/`,
    );
    expect(stdout, stderr).toBe("demo-1.0.0\n");
  });

  test("SC-13: a login that changed in its file and was imported again is used at once, under the same placeholder", async () => {
    const before = (await run("cat ~/.netrc")).stdout;
    writeFileSync(join(home, ".netrc"), `machine api.test login me password ${CANARY}-second\n`);
    expect(viv(server, ["secret", "import", join(home, ".netrc")], { env: { HOME: home } }).out).toContain("replaced");
    await eventually(
      async () => {
        await run(`curl -sS --netrc https://api.test:${port}/things`);
        return heard.at(-1);
      },
      (last) => last === `GET api.test Basic ${Buffer.from(`me:${CANARY}-second`).toString("base64")}`,
      5_000,
    );
    expect((await run("cat ~/.netrc")).stdout).toBe(before);
    viv(server, ["secret", "rm", "netrc-api.test"]);
    // The proxy does not open that connection any more; the user's own list vouches for the host.
    await run(`curl -sS --netrc https://api.test:${port}/things`);
    expect(heard.at(-1)).toMatch(/^GET api\.test Basic /);
    expect(Buffer.from(heard.at(-1)?.split(" ").at(-1) ?? "", "base64").toString()).toMatch(/^me:viv-secret-/);
  });

  test("SC-10: no value is in the audit trail, events, effects, logs or the state folder", async () => {
    const { events } = await server.client.call("listEvents", { limit: 1000 });
    const texts = [
      viv(server, ["audit", "--json"]).out,
      viv(server, ["effects", "--json"]).out,
      JSON.stringify(events),
      JSON.stringify(await server.client.call("listSecrets", {})),
    ];
    for (const text of texts) expect(text).not.toContain(`${CANARY}-`);
    expect(texts[0]).toContain("secret.set");
    // Volumes are looked through from inside.
    const holders = `find ${server.paths.home} -xdev -type f -size -64M -exec grep -lF -e '${CANARY}-' {} +`;
    expect(execFileSync("sh", ["-c", `${holders} || true`], { encoding: "utf8" })).toBe("");
  });
});
