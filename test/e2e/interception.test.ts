/** NET-4: a secret of any HTTPS host is put into requests outside, and into no others. */
import { once } from "node:events";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CANARY, scanFor } from "../support/canaries.ts";
import { certificate } from "../support/certificates.ts";
import { TestResolver } from "../support/origins.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { Terminal } from "../support/terminal.ts";
import { viv } from "../support/viv.ts";

describe("secrets in requests over TLS", needs("root", "openssl", "curl"), () => {
  const place = mkdtempSync(join(tmpdir(), "viv-tls-"));
  const heard: { url: string; authorization: string }[] = [];
  let resolver: TestResolver;
  let web: Server;
  let port: number;
  let server: TestServer;
  let box: string;
  const curl = (host: string, words = "", path = "/v1/orders"): string =>
    `curl -sS -w '%{http_code}' ${words} https://${host}:${port}${path}`;

  beforeAll(async () => {
    const own = certificate(place, "bound.test", "other.test");
    resolver = await TestResolver.open();
    for (const name of ["bound.test", "other.test", "wrong.test"]) resolver.names.set(name, ["127.0.0.2"]);
    web = createServer(own, (request, response) => {
      request.resume();
      heard.push({ url: request.url ?? "", authorization: String(request.headers.authorization) });
      response.end("done\n");
    }).listen(0, "127.0.0.2");
    await once(web, "listening");
    port = (web.address() as AddressInfo).port;
    const opened = ["bound.test", "other.test", "wrong.test"].map((host) => ({ host, ports: [port] }));
    server = await TestServer.start({
      config: { network: { mode: "allow-list", private: opened, resolvers: [resolver.address] } },
      env: { NODE_EXTRA_CA_CERTS: own.file },
    });
    for (const host of ["bound.test", "wrong.test"])
      viv(server, ["secret", "set", host.slice(0, 5), "--host", `${host}:${port}`, "--path", "/v1", "--all-projects"], {
        input: `${CANARY}-${host}`,
      });
    box = (await server.create()).id;
  });
  afterAll(async () => {
    web.close();
    resolver.close();
    rmSync(place, { recursive: true, force: true });
    await server?.remove();
  });

  test("NET-4: the host gets the secret, the program inside only ever has the placeholder", async () => {
    const { stdout, stderr } = await server.sh(box, curl("bound.test", '-H "Authorization: Bearer $VIV_SECRET_BOUND"'));
    expect(stdout, stderr).toBe("done\n200");
    expect(heard.at(-1)?.authorization).toBe(`Bearer ${CANARY}-bound.test`);
    await server.sh(box, curl("bound.test", '-u "me:$VIV_SECRET_BOUND" -d a=1'));
    expect(heard.at(-1)?.authorization).toBe(`Basic ${Buffer.from(`me:${CANARY}-bound.test`).toString("base64")}`);
    expect((await server.sh(box, `env; ${scanFor(["/run", "/tmp", "/etc", server.project])}`)).stdout).not.toContain(CANARY);
  });

  test("SC-02, SC-03: elsewhere, below other paths and in addresses the placeholder goes as it is", async () => {
    const { stdout } = await server.sh(box, "echo $VIV_SECRET_BOUND");
    const placeholder = stdout.trim();
    expect(placeholder).toMatch(/^viv-secret-/);
    const auth = '-H "Authorization: Bearer $VIV_SECRET_BOUND"';
    // The real host, whose certificate the test made, since the proxy does not open this connection.
    const direct = await server.sh(box, `${curl("other.test", auth)} -k`);
    expect(direct.stdout).toBe("done\n200");
    expect(heard.at(-1)?.authorization).toBe(`Bearer ${placeholder}`);
    await server.sh(box, curl("bound.test", auth, "/v2/orders"));
    expect(heard.at(-1)?.authorization).toBe(`Bearer ${placeholder}`);
    await server.sh(box, curl("bound.test", "", `/v1/orders?key=${placeholder}`));
    expect(heard.at(-1)?.url).toBe(`/v1/orders?key=${placeholder}`);
  });

  test("SC-07, SC-09: a host that is not who it says, and a request that would be sent back, get nothing", async () => {
    const before = heard.length;
    const wrong = await server.sh(box, curl("wrong.test", '-H "Authorization: Bearer $VIV_SECRET_WRONG"'));
    expect(wrong.stdout).toMatch(/ERR_TLS_CERT_ALTNAME_INVALID.*502$/s);
    expect((await server.sh(box, curl("bound.test", "-X TRACE"))).stdout).toMatch(/400$/);
    expect(heard.length).toBe(before);
  });

  test("SC-14: another project than the one it was kept for has a person asked, and gets nothing before", async () => {
    const set = (...words: string[]) => viv(server, ["secret", "set", "mine", "--host", `bound.test:${port}`, ...words], { input: CANARY });
    expect(set()).toMatchObject({ code: 2, err: expect.stringMatching(/Which projects.*--project PATH.*--all-projects/s) });
    expect(set("--project", server.project)).toMatchObject({ code: 0, out: expect.stringContaining(server.project) });
    const other = join(server.place, "other");
    mkdirSync(other);
    execFileSync("git", ["init", "-q", other]);
    const [own, stranger] = [(await server.create()).id, (await server.create({ project: other })).id];
    const line = curl("bound.test", '-H "Authorization: Bearer $VIV_SECRET_MINE"');
    expect((await server.sh(own, line)).stdout).toBe("done\n200");
    for (const answer of ["deny", "once"] as const) {
      const before = heard.length;
      const used = server.sh(stranger, line);
      const [asked] = await eventually(
        async () => (await server.client.call("listApprovals", {})).approvals,
        (waiting) => waiting.length > 0,
      );
      expect(asked).toMatchObject({ kind: "secret", project: other, target: `mine, which goes to bound.test:${port}` });
      expect(heard.length).toBe(before);
      await server.client.call("answerApproval", { approval: asked?.id ?? "", answer, approver: server.approver() });
      expect((await used).stdout).toMatch(answer === "deny" ? /the answer is no.*403$/s : /^done\n200$/);
      // What was denied stays so for this secret; kept anew, it is another one.
      if (answer === "deny") viv(server, ["secret", "rm", "mine"]);
      if (answer === "deny") set("--project", server.project);
    }
    expect(heard.at(-1)?.authorization).toBe(`Bearer ${CANARY}`);
  });

  test("NET-4: which projects use it is asked on a terminal", async () => {
    const terminal = new Terminal(server, ["secret", "set", "asked", "--host", "asked.test"], server.project);
    await terminal.until("Which projects may use asked?");
    // This one; and then the value.
    await terminal.until("is kept for asked.test and projects:", "t\n");
    expect(await terminal.end()).toBe(0);
    const { secrets } = await server.client.call("listSecrets", {});
    expect(secrets.find(({ name }) => name === "asked")?.projects).toEqual([server.project]);
    expect(viv(server, ["secret", "ls"]).out).toMatch(/PROJECTS(.|\n)*asked +asked\.test +\S*project/);
  });

  test("SC-12: the authority's key is not inside, and only hosts with a secret are opened", async () => {
    const issuer = async (host: string): Promise<string> =>
      (await server.sh(box, `curl -svk https://${host}:${port}/ 2>&1 | grep -i issuer:`)).stdout;
    expect(await issuer("bound.test")).toContain("Vivarium");
    expect(await issuer("other.test")).not.toContain("Vivarium");
    expect((await server.sh(box, "grep -rl 'PRIVATE KEY' /run 2>/dev/null")).stdout).toBe("");
    const [file] = readdirSync(server.paths.home).filter((name) => name === "interception-ca.json");
    expect(statSync(join(server.paths.home, file ?? "")).mode & 0o777).toBe(0o600);
  });
});
