/** The way out of a sandbox, from the program inside to servers of the test on loopback aliases. */
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { connect, type AddressInfo } from "node:net";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { text as readAll } from "node:stream/consumers";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { run } from "../../src/base/host/run.ts";
import type { CommandResult } from "../../src/base/schema/command.ts";
import { TestResolver } from "../support/origins.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { viv } from "../support/viv.ts";

/** Without the variables, as a program that does not know them. */
const PLAIN = "unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY all_proxy ALL_PROXY;";

describe("the way out of a sandbox", needs("root", "curl"), () => {
  let resolver: TestResolver;
  let web: Server;
  let port: number;
  /** The server's own. */
  let own: number;
  let server: TestServer;
  let box: string;
  const url = (host = "allowed.test", path = "/"): string => `http://${host}:${port}${path}`;
  const curl = (sandbox: string, address: string, options = ""): Promise<CommandResult> =>
    server.sh(sandbox, `curl -sS -m 10 -w ' %{http_code}' ${options} '${address}'`);

  beforeAll(async () => {
    resolver = await TestResolver.open();
    resolver.names.set("allowed.test", ["127.0.0.2"]);
    web = createServer((request, response) => {
      if (request.url === "/slow") response.write("first ");
      else if (request.url === "/moved") response.writeHead(302, { location: `http://127.0.0.2:${port}/` }).end();
      else if (request.url === "/within") response.writeHead(302, { location: "/there" }).end();
      else response.end(`hello ${request.headers.host} ${request.url}`);
    }).listen(0, "127.0.0.2");
    await once(web, "listening");
    port = (web.address() as AddressInfo).port;
    const free = createServer().listen(0, "127.0.0.1");
    await once(free, "listening");
    own = (free.address() as AddressInfo).port;
    free.close();
    resolver.names.set("own.test", ["127.0.0.1"]);
    const opened = [
      { host: "allowed.test", ports: [port] },
      { host: "own.test", ports: [port, own] },
    ];
    const rules = { private: opened, resolvers: [resolver.address] };
    server = await TestServer.start({
      config: { network: rules },
      flags: ["--listen", String(own)],
      files: { "vivarium.json": JSON.stringify({ network: { mode: "allow-list" } }) },
    });
    await server.client.call("trust", { project: server.project });
    box = (await server.create()).id;
  });
  beforeEach(() => (resolver.asked.length = 0));
  afterAll(async () => {
    web.close();
    web.closeAllConnections();
    resolver.close();
    await server?.remove();
  });

  test("NET-1: curl reaches an allowed host and no other, and is told why", async () => {
    expect((await curl(box, url("allowed.test", "/path"))).stdout).toBe(`hello allowed.test:${port} /path 200`);
    const denied = await curl(box, "http://other.test/");
    expect(denied.stdout).toContain("host_not_allowed");
    expect(denied.stdout).toContain("network.allow");
    expect(denied.stdout).toMatch(/ 403$/);
    expect(resolver.asked).not.toContain("other.test");
  });

  test("programs that know no proxy reach the same hosts, and no others (NW-06)", async () => {
    expect((await server.sh(box, `${PLAIN} curl -sS ${url("allowed.test", "/direct")}`)).stdout).toBe(`hello allowed.test:${port} /direct`);
    expect((await server.sh(box, `${PLAIN} curl -sS http://other.example/`)).stdout).toContain("host_not_allowed");
    expect((await server.sh(box, `${PLAIN} curl -sS -m 5 https://other.example/`)).end?.exitCode).not.toBe(0);
    expect((await server.sh(box, "getent ahostsv4 never.asked.example")).stdout).toMatch(/^198\.1[89]\./);
    expect(new Set(resolver.asked)).toEqual(new Set(["allowed.test"]));
  });

  test("names that do not exist outside, or anywhere, do not exist inside, and none that is denied is asked for", async () => {
    resolver.names.set("there.example", ["93.184.215.14"]);
    const made = (await server.create()).id;
    await server.client.call("changeNetwork", { sandbox: made, mode: "public" });
    const nowhere = ["nosuch.invalid", "some.test", "printer.local", "app.localhost", "db", "nosuch.example"];
    const line = (name: string): string => `getent ahostsv4 ${name} | head -1 | cut -d' ' -f1; getent ahosts ${name} >/dev/null; echo $?`;
    const results = await server.sh(made, [...nowhere, "there.example", "allowed.test"].map(line).join(";"));
    const found = expect.stringMatching(/^198\.1[89]\./);
    expect(results.stdout.trim().split("\n")).toEqual([...nowhere.map(() => "2"), found, "0", found, "0"]);
    expect(new Set(resolver.asked)).toEqual(new Set(["nosuch.example", "there.example", "allowed.test"]));
    // Also with the variables of the proxy, which would answer in its own words.
    expect((await curl(made, "http://nosuch.invalid/")).end?.exitCode).toBe(6);
    expect((await curl(made, "http://db/")).stdout).toMatch(/"not_resolved".* 502$/s);
    expect((await server.sh(made, "getent ahostsv4 localhost $(hostname) | grep -vc 127.0")).stdout).toBe("0\n");
    const { records } = await server.client.call("listAudit", { sandbox: made });
    const looked = records.filter(({ action }) => action === "network.lookup").map(({ target }) => target);
    expect(looked.toSorted()).toEqual(["allowed.test:53", "nosuch.example:53", "there.example:53"]);
    await server.client.call("removeSandbox", { sandbox: made });
  });

  test("NW-01, NW-06: with an open network no packet leaves but through the proxy", async () => {
    await server.client.call("changeNetwork", { sandbox: box, mode: "public" });
    const dial = (host: string, at: number): Promise<CommandResult> =>
      server.sh(box, `timeout 3 bash -c 'exec 3<>/dev/tcp/${host}/${at}' 2>&1`);
    for (const [host, at] of [
      ["1.1.1.1", 443],
      ["192.0.2.1", 53],
      ["127.0.0.2", port],
      ["169.254.169.254", 80],
      ["10.0.0.1", 853],
    ] as const)
      expect((await dial(host, at)).end?.exitCode, host).not.toBe(0);
    const [address = "", at = ""] = resolver.address.split(":");
    expect((await server.sh(box, `timeout 3 bash -c 'echo x >/dev/udp/${address}/${at}; sleep 0.2'; true`)).end?.exitCode).toBe(0);
    expect((await server.sh(box, "timeout 3 bash -c 'echo x >/dev/udp/8.8.8.8/53' 2>&1")).stdout).toContain("unreachable");
    expect(resolver.asked).toEqual([]);
    await server.client.call("changeNetwork", { sandbox: box, mode: "allow-list" });
  });

  test("NW-04, NW-05: neither metadata nor private addresses are reached in public mode", async () => {
    await server.client.call("changeNetwork", { sandbox: box, mode: "public" });
    for (const host of [
      "169.254.169.254",
      "[fd00:ec2::254]",
      "100.100.100.200",
      "168.63.129.16",
      "metadata.google.internal",
      "192.0.0.192",
    ])
      expect((await curl(box, `http://${host}/`)).stdout, host).toContain('"metadata"');
    for (const host of [
      "10.0.0.1",
      "172.16.0.1",
      "192.168.0.1",
      "100.64.0.1",
      "198.18.0.1",
      "203.0.113.1",
      "[fd12::1]",
      "224.0.0.1",
      "240.0.0.1",
      "0.0.0.0",
      "[::ffff:127.0.0.1]",
    ])
      expect((await curl(box, `http://${host}/`, "--noproxy ''")).stdout, host).toContain("private_address");
    expect((await curl(box, url())).stdout).toMatch(/ 200$/);
    await server.client.call("changeNetwork", { sandbox: box, mode: "allow-list" });
  });

  test("a loopback service of reality is not reached through the proxy, and the answer names services (NW-03)", async () => {
    const here = createServer((_, response) => response.end("reality")).listen(0, "127.0.0.1");
    await once(here, "listening");
    const at = (here.address() as AddressInfo).port;
    await server.client.call("changeNetwork", { sandbox: box, mode: "public", ports: [80, 443, at] });
    const { stdout } = await curl(box, `http://127.0.0.1:${at}/`, "--noproxy '' -x http://127.0.0.1:4098");
    expect(stdout).toContain("services");
    expect(stdout).toMatch(/ 403$/);
    expect(await (await fetch(`http://127.0.0.1:${at}/`)).text()).toBe("reality");
    here.close();
    await server.client.call("changeNetwork", { sandbox: box, mode: "allow-list", ports: [80, 443] });
  });

  test("PX-05: a redirect that a program follows comes back through the proxy, and is refused there", async () => {
    const followed = await curl(box, url("allowed.test", "/moved"), "-L");
    expect(followed.stdout).toMatch(/private_address.* 403$/s);
    expect((await curl(box, url("allowed.test", "/moved"))).stdout).toMatch(/ 302$/);
    expect((await curl(box, url("allowed.test", "/within"), "-L")).stdout).toMatch(/^hello .* 200$/);
  });

  test("PX-12: the server's own port is not reached, not even where the user's config opens it", async () => {
    expect((await fetch(`http://127.0.0.1:${own}/sandboxes`)).status).toBe(401);
    expect((await curl(box, `http://own.test:${own}/`)).stdout).toMatch(/"own_port".* 403$/s);
    expect((await curl(box, `http://own.test:${port}/`)).stdout).toMatch(/ 502$/);
  });

  test("AP-12: the server's API is not reached from inside, by its socket, by any address, or through the gateway's port", async () => {
    const { socket } = server.paths;
    const addresses = Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map(({ address }) => address.replace(/%.*/, "")));
    const status = "-sS -m 3 -o /dev/null -w '%{http_code}'";
    const hosts = ["127.0.0.1", "localhost", ...addresses.map((address) => (address.includes(":") ? `[${address}]` : address))];
    const tries = [
      `curl ${status} --unix-socket ${socket} http://viv/v1/sandboxes`,
      ...hosts.map((host) => `curl --noproxy '*' ${status} http://${host}:${own}/v1/sandboxes`),
    ];
    const look = `ls -A ${server.paths.home}; ls -d ${socket} 2>/dev/null; ${tries.map((line) => `${line} 2>/dev/null; echo`).join("; ")}`;
    const { stdout } = await server.sh(box, look, { user: "root" });
    expect(stdout.trim().split("\n")).toEqual(["agents", "runtimes", ...tries.map(() => "000")]);
    // The gateway is another program: none of the API's routes are there.
    expect((await curl(box, "http://localhost:4097/v1/sandboxes")).stdout).toMatch(/ 404$/);
    const outside = (await run("sh", ["-c", `${tries[0]}; ${tries[1]}`])).stdout.toString();
    expect(outside).toMatch(/^\d{3}401$/);
    expect(outside.slice(0, 3)).not.toBe("000");
  });

  test("AU-07: no process inside holds the trail, or anything else of the server's", async () => {
    const held = (folder: string): string => `ls -l /proc/[0-9]*/fd/ /proc/[0-9]*/map_files/ 2>/dev/null | grep -c '${folder}'`;
    expect((await server.sh(box, held(server.paths.home), { user: "root" })).stdout).toBe("0\n");
    expect(
      (await server.sh(box, `find / -xdev -name 'vivarium.db*' -o -xdev -name audit-anchor 2>/dev/null | wc -l`, { user: "root" })).stdout,
    ).toBe("0\n");
    expect(Number((await run("sh", ["-c", held(server.paths.home)])).stdout.toString())).toBeGreaterThan(0);
  });

  test("PX-11: the socket says who speaks, whatever a request claims, and no sandbox reaches another's", async () => {
    const sibling = (await server.create({ network: "off" })).id;
    await server.client.call("changeNetwork", { sandbox: sibling, mode: "allow-list", deny: ["allowed.test"] });
    const claims = [`--proxy-user ${box}:`, `--proxy-header 'X-Sandbox: ${box}'`, `-H 'SANDBOX_ID: ${box}' -A ${box}`];
    for (const claim of claims) expect((await curl(sibling, url(), claim)).stdout, claim).toMatch(/"production".* 403$/s);
    const { records } = await server.client.call("listAudit", { sandbox: sibling });
    expect(records.filter(({ label, actor }) => label === "DENIED" && actor.name === sibling)).toHaveLength(claims.length);
    const seen = await server.sh(sibling, "find / -xdev -name egress.sock 2>/dev/null; grep -c egress.sock /proc/net/unix", {
      user: "root",
    });
    expect(seen.stdout).toBe("0\n");
    // The control: who gets at the other's socket speaks as the other.
    const socket = join(server.paths.home, "run", box, "egress.sock");
    expect(await fetchThrough(socket, url())).toMatch(/^HTTP\/1.1 200 /);
    await server.client.call("removeSandbox", { sandbox: sibling });
  });

  test("PX-11: a sibling without a network has no way at all", async () => {
    const sibling = (await server.create()).id;
    await server.client.call("changeNetwork", { sandbox: sibling, mode: "off" });
    expect((await server.sh(sibling, "env | grep -ci proxy")).stdout).toBe("0\n");
    expect((await curl(sibling, url())).stderr).toContain("Could not resolve host");
    expect((await curl(sibling, url(), "-x http://127.0.0.1:4098")).end?.exitCode).not.toBe(0);
    expect((await curl(box, url())).stdout).toMatch(/ 200$/);
    await server.client.call("removeSandbox", { sandbox: sibling });
  });

  async function fetchThrough(socketPath: string, address: string): Promise<string> {
    const socket = connect(socketPath);
    socket.write(`GET ${address} HTTP/1.1\r\nHost: ${new URL(address).host}\r\nConnection: close\r\n\r\n`);
    return readAll(socket);
  }

  test("an answer that is under way ends when the host is denied; `viv network` shows and changes it", async () => {
    const heard = once(web, "request");
    const slow = curl(box, url("allowed.test", "/slow"), "-m 25");
    await heard;
    const began = performance.now();
    expect(viv(server, ["network", box, "--deny", "allowed.test"]).out).toContain("never: allowed.test");
    expect((await slow).end?.exitCode).not.toBe(0);
    expect(performance.now() - began).toBeLessThan(5_000);
    expect((await curl(box, url())).stdout).toContain('"production"');
    const shown = JSON.parse(viv(server, ["network", box, "--json"]).out) as {
      rules: { production: string[] };
      denied: number;
    };
    expect(shown.rules.production).toEqual(["allowed.test"]);
    expect(shown.denied).toBeGreaterThan(0);
  });

  test("PX-17: a server that is down means no way out; the next one opens it again, with the same rules", async () => {
    const other = (await server.create()).id;
    const line = `for i in $(seq 1 600); do ${PLAIN} curl -s -m 2 ${url()} >/dev/null && echo reached || echo refused; sleep 0.05; done`;
    const { id } = await server.client.call("runCommand", { sandbox: other, command: ["/bin/sh", "-c", line], background: true });
    const output = async (): Promise<string> => (await server.client.call("inspectCommand", { sandbox: other, command: id })).stdout;
    await eventually(output, (text) => text.includes("reached"));
    await server.kill();
    // Long enough for the loop inside to meet the closed door.
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    await server.up();
    await eventually(output, (text) => /refused\n(.*\n)*reached/.test(text));
    expect((await curl(other, url())).stdout).toMatch(/ 200$/);
    expect((await curl(box, url())).stdout).toContain('"production"');
    await server.client.call("removeSandbox", { sandbox: other });
  });

  test("a create may ask for a mode of its own, spare or not", async () => {
    const off = (await server.create({ network: "off" })).id;
    expect((await curl(off, url())).end?.exitCode).not.toBe(0);
    const on = (await server.create()).id;
    expect((await curl(on, url())).stdout).toMatch(/ 200$/);
    expect(viv(server, ["create", "--network", "public", "--project", server.project, "--name", "wide"]).code).toBe(0);
    expect((await server.client.call("inspectNetwork", { sandbox: "wide" })).rules.mode).toBe("public");
    expect(viv(server, ["create", "--network", "everything", "--project", server.project]).code).toBe(2);
  });

  test("a fork and a rolled back sandbox have the network of the one they come from", async () => {
    const made = (await server.create()).id;
    const snapshot = await server.client.call("createSnapshot", { sandbox: made });
    await server.client.call("rollback", { sandbox: made, snapshot: snapshot.id });
    expect((await curl(made, url())).stdout).toMatch(/ 200$/);
    const { sandboxes } = await server.client.call("forkSandbox", { sandbox: made });
    expect((await curl(sandboxes[0]?.id ?? "", url())).stdout).toMatch(/ 200$/);
  });

  test("NET-3: decisions are events, and in the audit trail with their bytes", async () => {
    const made = (await server.create()).id;
    await curl(made, url("allowed.test", "/noted"));
    await curl(made, "http://other.test/");
    const types = async (): Promise<string[]> =>
      (await server.client.call("listEvents", { sandbox: made, limit: 100 })).events.map(({ type }) => type);
    await eventually(types, (all) => all.includes("network.allowed") && all.includes("network.denied"));
    const records = await eventually(
      async () => (await server.client.call("listAudit", { sandbox: made })).records,
      (all) => all.some(({ action }) => action === "network.ended"),
    );
    expect(records.find(({ label }) => label === "DENIED")).toMatchObject({ action: "network.request", target: "other.test:80" });
    expect(records.find(({ action }) => action === "network.ended")?.arguments).toMatchObject({ address: "127.0.0.2" });
  });

  test("NET-1: a sandbox without any network option has the public web; a config that opens more waits for trust, one that narrows does not", async () => {
    const rulesOf = async (sandbox: string) => (await server.client.call("inspectNetwork", { sandbox })).rules;
    const config = (network: object): void => writeFileSync(join(server.project, "vivarium.json"), JSON.stringify({ network }));
    config({});
    expect(await rulesOf((await server.create()).id)).toMatchObject({ mode: "public", ports: [80, 443], allow: [], production: [] });
    config({ ports: [22, 443], production: ["prod.test"] });
    const wide = await server.create();
    expect(wide.untrusted).toEqual(["network"]);
    expect(await rulesOf(wide.id)).toMatchObject({ mode: "public", ports: [443], production: ["prod.test"] });
    expect((await curl(wide.id, "https://prod.test/")).stderr).toContain("403");
    config({ mode: "allow-list", allow: ["only.test"] });
    const listed = await server.create();
    expect(await rulesOf(listed.id)).toMatchObject({ mode: "allow-list", allow: [{ host: "only.test", tcp: false }] });
    expect((await curl(listed.id, "http://other.test/")).stdout).toContain("host_not_allowed");
    config({ ports: [22, 443], production: ["prod.test"] });
    await server.client.call("trust", { project: server.project });
    expect(await rulesOf((await server.create()).id)).toMatchObject({ mode: "public", ports: [22, 443] });
  });

  test("NET-1, NET-2: a config of the user's that has become stricter holds for the sandboxes there are", async () => {
    const made = (await server.create()).id;
    await server.client.call("changeNetwork", { sandbox: made, mode: "public" });
    expect((await curl(made, url())).stdout).toMatch(/ 200$/);
    const { network } = JSON.parse(readFileSync(server.paths.config, "utf8")) as { network: object };
    const restart = async (more: object): Promise<void> => {
      await server.down();
      writeFileSync(server.paths.config, JSON.stringify({ network: { ...network, ...more } }));
      await server.up();
    };
    await restart({ production: ["allowed.test"] });
    expect((await curl(made, url())).stdout).toContain('"production"');
    await restart({ ceiling: "off" });
    expect((await server.client.call("inspectNetwork", { sandbox: made })).rules.mode).toBe("off");
    expect((await curl(made, url())).end?.exitCode).not.toBe(0);
  });
});
