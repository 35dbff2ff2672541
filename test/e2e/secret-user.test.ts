/** NET-4 under an ordinary user's server: the same, without root. */
import { once } from "node:events";
import { chmodSync, chownSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { certificate } from "../support/certificates.ts";
import { CANARY } from "../support/canaries.ts";
import { TestResolver } from "../support/origins.ts";
import { TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { viv } from "../support/viv.ts";

/** An id that belongs to no account. */
const UID = 64_125;

describe("secrets under an ordinary user's server", needs("root", "user-namespaces", "open-checkout", "openssl", "curl"), () => {
  const place = mkdtempSync(join(tmpdir(), "viv-user-"));
  const heard: string[] = [];
  let resolver: TestResolver;
  let web: Server;
  let server: TestServer;
  let port: number;

  beforeAll(async () => {
    chmodSync(place, 0o755);
    const own = certificate(place, "bound.test");
    resolver = await TestResolver.open();
    resolver.names.set("bound.test", ["127.0.0.2"]);
    web = createServer(own, (request, response) => {
      heard.push(String(request.headers.authorization));
      response.end("hello");
    }).listen(0, "127.0.0.2");
    await once(web, "listening");
    port = (web.address() as AddressInfo).port;
    const network = { mode: "allow-list", private: [{ host: "bound.test", ports: [port] }], resolvers: [resolver.address] };
    server = await TestServer.start({ uid: UID, config: { network }, env: { NODE_EXTRA_CA_CERTS: own.file } });
    const file = join(server.place, ".netrc");
    writeFileSync(file, `machine bound.test login me password ${CANARY}-user\n`, { mode: 0o600 });
    chownSync(file, UID, UID);
  });
  afterAll(async () => {
    web.close();
    web.closeAllConnections();
    resolver.close();
    rmSync(place, { recursive: true, force: true });
    await server?.remove();
  });

  test("NET-4: an imported login is a placeholder inside, and the host gets the value", async () => {
    expect(viv(server, ["secret", "import", "--project", server.project]).out).toContain("netrc-bound.test");
    // The file names no port, and this host has another one than usual.
    viv(server, ["secret", "set", "netrc-bound.test", "--host", `bound.test:${port}`], { input: `${CANARY}-user` });
    const box = (await server.create({ env: { HOME: server.place, PATH: "/usr/bin:/bin" } })).id;
    const { stdout, stderr } = await server.sh(box, `cat ~/.netrc; curl -sS --netrc https://bound.test:${port}/`);
    expect(stdout, stderr).toMatch(/^machine bound\.test login me password viv-secret-[\w-]+\nhello$/);
    expect(heard).toEqual([`Basic ${Buffer.from(`me:${CANARY}-user`).toString("base64")}`]);
  });
});
