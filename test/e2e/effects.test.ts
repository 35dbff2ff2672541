/** NET-6: requests that change something outside have an entry with a receipt, and wait for a person where they are held. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TestResolver } from "../support/origins.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";
import { viv } from "../support/viv.ts";

describe("the ledger of effects", needs("root", "curl"), () => {
  let resolver: TestResolver;
  let web: Server;
  let port: number;
  let server: TestServer;
  let box: string;
  const heard: string[] = [];
  const carried: string[] = [];

  beforeAll(async () => {
    resolver = await TestResolver.open();
    resolver.names.set("shop.test", ["127.0.0.2"]);
    web = createServer((request, response) => {
      void text(request).then((body) => {
        heard.push(`${request.method} ${request.url} ${body}`);
        carried.push(String(request.headers.authorization));
        response.writeHead(request.method === "GET" ? 200 : 201).end("done\n");
      });
    }).listen(0, "127.0.0.2");
    await once(web, "listening");
    port = (web.address() as AddressInfo).port;
    server = await TestServer.start({
      config: { network: { mode: "allow-list", private: [{ host: "shop.test", ports: [port] }], resolvers: [resolver.address] } },
    });
    box = (await server.create()).id;
  });
  afterAll(async () => {
    web.close();
    resolver.close();
    await server?.remove();
  });

  const curl = (words: string): string => `curl -sS -w '%{http_code}' ${words} http://shop.test:${port}/orders`;
  const effects = async () => (await server.client.call("listEffects", { sandbox: box })).effects;
  const waiting = () =>
    eventually(
      async () => (await server.client.call("listApprovals", {})).approvals.filter(({ sandbox }) => sandbox === box),
      ({ length }) => length > 0,
    );
  const background = async (line: string): Promise<string> =>
    (await server.client.call("runCommand", { sandbox: box, command: ["/bin/sh", "-c", line], background: true })).id;
  const ended = (command: string) =>
    eventually(
      () => server.client.call("inspectCommand", { sandbox: box, command }),
      ({ running }) => !running,
    );

  test("NET-6: has an entry with a receipt for what can change something, and none for what reads", async () => {
    expect((await server.sh(box, curl("-d a=1"))).stdout).toBe("done\n201");
    expect((await server.sh(box, curl(""))).stdout).toBe("done\n200");
    const [entry, ...more] = await eventually(effects, ([first]) => first?.state === "answered");
    expect(entry).toMatchObject({ method: "POST", url: `http://shop.test:${port}/orders`, status: 201 });
    expect(more).toEqual([]);
    expect(viv(server, ["effects", box]).out).toContain("POST");
  });

  test("SC-02, SC-06: a placeholder arrives as it is: over plain HTTP at the host of its secret, and anywhere else", async () => {
    for (const host of ["shop.test", "api.example.com"]) {
      const kept = viv(server, ["secret", "set", "shop", "--host", host, "--all-projects", "--json"], { input: "the-real-value" });
      const { placeholder } = JSON.parse(kept.out) as { placeholder: string };
      expect((await server.sh(box, curl(`-H 'Authorization: Bearer ${placeholder}'`))).stdout).toBe("done\n200");
      expect(carried.at(-1)).toBe(`Bearer ${placeholder}`);
    }
  });

  test("NET-6: holds a request until a person says yes, and sends it once", async () => {
    expect(viv(server, ["network", box, "--effects", "hold"]).code).toBe(0);
    heard.length = 0;
    const command = await background(curl("-d b=2"));
    const [asked] = await waiting();
    expect(asked).toMatchObject({ kind: "effect", state: "waiting" });
    expect(asked?.target).toContain(`POST http://shop.test:${port}/orders (3 bytes, sha256 `);
    expect(heard).toEqual([]);
    await server.client.call("answerApproval", { approval: asked?.id ?? "", answer: "once", approver: server.approver() });
    expect((await ended(command)).stdout).toBe("done\n201");
    expect(heard).toEqual(["POST /orders b=2"]);
    // Reading needs no leave, and the yes is used up: the same request is a new question.
    expect((await server.sh(box, curl(""))).stdout).toBe("done\n200");
    const again = await background(curl("-d b=2"));
    const [next] = await waiting();
    expect(next?.id).not.toBe(asked?.id);
    await server.client.call("answerApproval", { approval: next?.id ?? "", answer: "deny", approver: server.approver() });
    expect((await ended(again)).stdout).toMatch(/effect_denied.*403$/s);
    expect(heard).toEqual(["POST /orders b=2", "GET /orders "]);
  });

  test("NET-6: a yes that comes after the sender has gone counts for the very same request alone", async () => {
    heard.length = 0;
    await server.sh(box, `${curl("-X PUT -d c=3")} --max-time 1`);
    const [asked] = await waiting();
    await server.client.call("answerApproval", { approval: asked?.id ?? "", answer: "once", approver: server.approver() });
    // Another body is another request.
    const other = await background(`${curl("-X PUT -d c=4")} --max-time 5`);
    const [second] = await waiting();
    await server.client.call("answerApproval", { approval: second?.id ?? "", answer: "deny", approver: server.approver() });
    expect((await ended(other)).stdout).toMatch(/403$/);
    expect(heard).toEqual([]);
    expect((await server.sh(box, curl("-X PUT -d c=3"))).stdout).toBe("done\n201");
    expect(heard).toEqual(["PUT /orders c=3"]);
  });
});
