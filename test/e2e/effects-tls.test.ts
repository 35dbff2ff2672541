/** NET-6: requests over TLS to hosts with a secret are in the ledger like plain ones, and no kill of the server sends one twice or loses it. */
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { certificate } from "../support/certificates.ts";
import { CANARY } from "../support/canaries.ts";
import { TestResolver } from "../support/origins.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { viv } from "../support/viv.ts";

describe("the ledger of effects over TLS", needs("root", "openssl", "curl"), () => {
  const place = mkdtempSync(join(tmpdir(), "viv-ledger-"));
  const heard: string[] = [];
  let resolver: TestResolver;
  let web: Server;
  let port: number;
  let server: TestServer;
  let box: string;
  /** The host holds its answer until the test resolves this. */
  let gate = Promise.resolve();

  beforeAll(async () => {
    const own = certificate(place, "bound.test");
    resolver = await TestResolver.open();
    resolver.names.set("bound.test", ["127.0.0.2"]);
    web = createServer(own, (request, response) => {
      void text(request).then(async (body) => {
        heard.push(`${request.method} ${request.url} ${body} ${request.headers.authorization}`);
        await gate;
        response.writeHead(request.method === "GET" ? 200 : 201).end("done\n");
      });
    }).listen(0, "127.0.0.2");
    await once(web, "listening");
    port = (web.address() as AddressInfo).port;
    server = await TestServer.start({
      config: { network: { mode: "allow-list", private: [{ host: "bound.test", ports: [port] }], resolvers: [resolver.address] } },
      env: { NODE_EXTRA_CA_CERTS: own.file },
    });
    viv(server, ["secret", "set", "shop", "--host", `bound.test:${port}`, "--all-projects"], { input: CANARY });
    box = (await server.create()).id;
  });
  beforeEach(() => {
    heard.length = 0;
    gate = Promise.resolve();
  });
  afterAll(async () => {
    web.close();
    web.closeAllConnections();
    resolver.close();
    rmSync(place, { recursive: true, force: true });
    await server?.remove();
  });

  const curl = (words: string): string =>
    `curl -sS -w '%{http_code}' -H "Authorization: Bearer $VIV_SECRET_SHOP" ${words} https://bound.test:${port}/orders`;
  const sent = (body: string): string => `POST /orders ${body} Bearer ${CANARY}`;
  const effects = async () => (await server.client.call("listEffects", { sandbox: box })).effects;
  const newest = async () => (await effects())[0];
  const start = async (line: string): Promise<string> =>
    (await server.client.call("runCommand", { sandbox: box, command: ["/bin/sh", "-c", line], background: true })).id;
  const ended = (command: string) =>
    eventually(
      () => server.client.call("inspectCommand", { sandbox: box, command }),
      ({ running }) => !running,
    );
  const waiting = () =>
    eventually(
      async () => (await server.client.call("listApprovals", {})).approvals.filter(({ state }) => state === "waiting"),
      ({ length }) => length > 0,
    );
  const approve = async (): Promise<string> => {
    const [asked] = await waiting();
    const approver = server.approver();
    await server.client.call("answerApproval", { approval: asked?.id ?? "", answer: "once", approver });
    return asked?.id ?? "";
  };
  /** A server that dies at this point, once the line has brought it there; then another one. */
  const dyingAt = async (point: string, line: string, meanwhile: () => Promise<unknown> = async () => undefined): Promise<void> => {
    await server.arm(point);
    // The server may be gone before it has answered.
    await start(line).catch(() => undefined);
    await meanwhile().catch(() => undefined);
    await server.died();
    await server.up();
  };

  test("NET-6: has an entry with a receipt and the address, without the secret; reading has none", async () => {
    expect((await server.sh(box, curl("-d a=1"))).stdout).toBe("done\n201");
    expect((await server.sh(box, curl(""))).stdout).toBe("done\n200");
    expect(heard).toEqual([sent("a=1"), `GET /orders  Bearer ${CANARY}`]);
    const [entry, ...more] = await eventually(effects, ([first]) => first?.state === "answered");
    expect(entry).toMatchObject({ method: "POST", url: `https://bound.test:${port}/orders`, status: 201 });
    expect(more).toEqual([]);
    expect(viv(server, ["effects", box, "--json"]).out).not.toContain(CANARY);
  });

  test("NET-6: an entry is durable before the request is sent: a server that dies then has not sent it", async () => {
    await dyingAt("effect.recorded", curl("-d b=1"));
    expect(heard).toEqual([]);
    expect(await newest()).toMatchObject({ method: "POST", state: "sent", status: null });
  });

  test("NET-6: a server that dies while the host works on it has sent it once, and the entry has no receipt", async () => {
    const held = Promise.withResolvers<void>();
    gate = held.promise;
    const before = (await effects()).length;
    await start(curl("-d c=1"));
    await eventually(
      () => heard.length,
      (length) => length === 1,
    );
    await server.kill();
    held.resolve();
    await server.up();
    expect(heard).toEqual([sent("c=1")]);
    expect(await effects()).toHaveLength(before + 1);
    expect(await newest()).toMatchObject({ state: "sent", status: null });
  });

  test("NET-6: a server that dies before the receipt is written has sent it once", async () => {
    await dyingAt("effect.answered", curl("-d d=1"));
    expect(heard).toEqual([sent("d=1")]);
    expect(await newest()).toMatchObject({ state: "sent", status: null });
  });

  test("NET-6: held, it waits for a person, and is sent once", async () => {
    viv(server, ["network", box, "--effects", "hold"]);
    const command = await start(curl("-d e=1"));
    const [asked] = await waiting();
    expect(asked?.target).toContain(`POST https://bound.test:${port}/orders (3 bytes, sha256 `);
    expect(heard).toEqual([]);
    const approval = await approve();
    expect((await ended(command)).stdout).toBe("done\n201");
    expect(heard).toEqual([sent("e=1")]);
    expect(await eventually(newest, (entry) => entry?.state === "answered")).toMatchObject({ approval, status: 201 });
  });

  test("NET-6: held when the server dies, it is still asked about, and sent once when it is sent again", async () => {
    await dyingAt("effect.held", curl("-d f=1"));
    expect(await newest()).toMatchObject({ state: "held" });
    const approval = await approve();
    const before = (await effects()).length;
    expect((await server.sh(box, curl("-d f=1"))).stdout).toBe("done\n201");
    expect(heard).toEqual([sent("f=1")]);
    // It is the entry of the question that goes on.
    expect(await eventually(newest, (entry) => entry?.state === "answered")).toMatchObject({ approval, status: 201 });
    expect(await effects()).toHaveLength(before);
  });

  test("NET-6: a yes is used before anything is sent: a server that dies then sends nothing, and asks anew", async () => {
    await dyingAt("effect.allowed", curl("-d g=1"), approve);
    expect(heard).toEqual([]);
    const command = await start(curl("-d g=1"));
    await approve();
    expect((await ended(command)).stdout).toBe("done\n201");
    expect(heard).toEqual([sent("g=1")]);
  });

  test("NET-6: allowed and recorded when the server dies, it is not sent by the next one by itself", async () => {
    await dyingAt("effect.recorded", curl("-d h=1"), approve);
    expect(heard).toEqual([]);
    expect(await newest()).toMatchObject({ state: "sent", status: null });
  });
});
