/** The way out of a sandbox, from the program inside to servers of the test on loopback aliases. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TestResolver } from "../support/origins.ts";
import { TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

describe("the way out of a sandbox", needs("root"), () => {
  let resolver: TestResolver;
  let web: Server;
  let port: number;
  let server: TestServer;
  let box: string;

  beforeAll(async () => {
    resolver = await TestResolver.open();
    resolver.names.set("allowed.test", ["127.0.0.2"]);
    web = createServer((request, response) => response.end(`hello ${request.headers.host} ${request.url}\n`)).listen(0, "127.0.0.2");
    await once(web, "listening");
    port = (web.address() as AddressInfo).port;
    server = await TestServer.start({
      config: { network: { mode: "allow-list", private: [{ host: "allowed.test", ports: [port] }], resolvers: [resolver.address] } },
    });
    box = (await server.create()).id;
  });
  afterAll(async () => {
    web.close();
    resolver.close();
    await server?.remove();
  });

  test("NET-1: curl reaches an allowed host and no other", async () => {
    const { stdout } = await server.sh(box, `curl -sS http://allowed.test:${port}/path`);
    expect(stdout).toBe(`hello allowed.test:${port} /path\n`);
    const denied = await server.sh(box, "curl -sS -w '%{http_code}' http://other.test/");
    expect(denied.stdout).toContain("host_not_allowed");
    expect(denied.stdout).toMatch(/403$/);
    expect(resolver.asked).not.toContain("other.test");
  });

  test("programs that know no proxy reach the same hosts, and no others", async () => {
    const plain = (line: string) => server.sh(box, `unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY all_proxy ALL_PROXY; ${line}`);
    const { stdout } = await plain(`curl -sS http://allowed.test:${port}/direct`);
    expect(stdout).toContain(`hello allowed.test:${port} /direct\n`);
    const denied = await plain("curl -sS -w '%{http_code}' http://other.test/");
    expect(denied.stdout).toContain("host_not_allowed");
    expect(resolver.asked).not.toContain("other.test");
  });
});
