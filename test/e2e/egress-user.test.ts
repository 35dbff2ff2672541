/** The way out of a sandbox that an ordinary user's server made: the same, without root. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TestResolver } from "../support/origins.ts";
import { TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

/** An id that belongs to no account. */
const UID = 64_124;

describe("the way out under an ordinary user's server", needs("root", "user-namespaces", "open-checkout", "curl"), () => {
  let resolver: TestResolver;
  let web: Server;
  let server: TestServer;
  let box: string;
  let url: string;

  beforeAll(async () => {
    resolver = await TestResolver.open();
    resolver.names.set("allowed.test", ["127.0.0.2"]);
    web = createServer((_, response) => response.end("hello")).listen(0, "127.0.0.2");
    await once(web, "listening");
    const { port } = web.address() as AddressInfo;
    url = `http://allowed.test:${port}/`;
    const network = { ceiling: "allow-list", private: [{ host: "allowed.test", ports: [port] }], resolvers: [resolver.address] };
    server = await TestServer.start({ uid: UID, config: { network } });
    box = (await server.create()).id;
  });
  afterAll(async () => {
    web.close();
    web.closeAllConnections();
    resolver.close();
    await server?.remove();
  });

  test("NET-1: allowed hosts are reached, by the proxy and by name, and no others", async () => {
    const plain = "unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY all_proxy ALL_PROXY;";
    for (const before of ["", plain]) {
      const { stdout, stderr } = await server.sh(box, `${before} curl -sS ${url}; curl -sS http://other.example/`);
      expect(stdout, stderr).toMatch(/^hello.*host_not_allowed/s);
    }
    expect(resolver.asked).not.toContain("other.example");
  });

  test("NET-1: no caller goes over the ceiling of the user's config, neither by asking nor later", async () => {
    expect((await server.client.call("inspectNetwork", { sandbox: box })).rules.mode).toBe("allow-list");
    await expect(server.create({ network: "public" })).rejects.toMatchObject({ code: "invalid_input" });
    const wider = server.client.call("changeNetwork", { sandbox: box, mode: "public" });
    await expect(wider).rejects.toMatchObject({ code: "invalid_input", message: expect.stringContaining("ceiling") });
    expect((await server.sh(box, "curl -sS http://other.test/")).stdout).toContain("host_not_allowed");
  });

  test("NW-01: and nothing else leaves", async () => {
    expect((await server.sh(box, "timeout 3 bash -c 'exec 3<>/dev/tcp/1.1.1.1/443' 2>&1")).stdout).toContain("unreachable");
  });
});
