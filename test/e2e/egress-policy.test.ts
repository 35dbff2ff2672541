/** The policy in the proxy: what it says of hosts holds for whatever runs inside, and a person can be asked. */
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { CommandResult } from "../../src/base/schema/command.ts";
import { TestResolver } from "../support/origins.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

describe("the policy in the proxy", needs("root", "curl"), () => {
  let resolver: TestResolver;
  let web: Server;
  let port: number;
  let server: TestServer;
  let box: string;
  const heard: string[] = [];
  const hosts = ["open.test", "fine.test", "asked.test", "later.asked.test", "always.asked.test", "denied.test", "prod.test"];

  beforeAll(async () => {
    resolver = await TestResolver.open();
    for (const name of hosts) resolver.names.set(name, ["127.0.0.2"]);
    web = createServer((request, response) => {
      heard.push(`${request.method} ${request.headers.host?.split(":")[0]}${request.url}`);
      if (request.url === "/slow") response.write("first ");
      else response.end("hello");
    }).listen(0, "127.0.0.2");
    await once(web, "listening");
    port = (web.address() as AddressInfo).port;
    const opened = hosts.map((host) => ({ host, ports: [port] }));
    server = await TestServer.start({ config: { network: { private: opened, resolvers: [resolver.address] } } });
    await rules({});
    box = (await server.create()).id;
  });
  beforeEach(() => {
    heard.length = resolver.asked.length = 0;
  });
  afterAll(async () => {
    web.close();
    web.closeAllConnections();
    resolver.close();
    await server?.remove();
  });

  /** The project's config from now on. */
  async function rules(more: Record<string, string>): Promise<void> {
    const policy = { host: { "asked.test": "ask", "*.asked.test": "ask", "denied.test": "deny", "prod.test": "allow", ...more } };
    writeFileSync(join(server.project, "vivarium.json"), JSON.stringify({ policy, network: { production: ["prod.test"] } }));
    await server.client.call("trust", { project: server.project });
  }
  const line = (host: string, words = "", path = "/"): string => `curl -sS -w ' %{http_code}' ${words} http://${host}:${port}${path}`;
  const curl = (host: string, words = ""): Promise<CommandResult> => server.sh(box, line(host, words));
  const background = async (text: string): Promise<string> =>
    (await server.client.call("runCommand", { sandbox: box, command: ["/bin/sh", "-c", text], background: true })).id;
  const ended = (command: string): Promise<CommandResult> =>
    eventually(
      () => server.client.call("inspectCommand", { sandbox: box, command }),
      ({ running }) => !running,
    );
  const answer = (approval: string, given: "once" | "always" | "deny"): Promise<unknown> =>
    server.client.call("answerApproval", { approval, answer: given, approver: server.approver() });
  const question = () =>
    eventually(
      async () => (await server.client.call("listApprovals", {})).approvals.find(({ sandbox }) => sandbox === box),
      (found) => found !== undefined,
    ).then((found) => found ?? expect.unreachable());

  test("NET-1: a denied host is refused with the rule, before a DNS server is asked for its address", async () => {
    expect((await curl("open.test")).stdout).toBe("hello 200");
    resolver.asked.length = 0;
    const { stdout } = await curl("denied.test");
    expect(JSON.parse(stdout.slice(0, -4))).toMatchObject({ code: "policy", error: expect.stringContaining("denied.test") });
    expect(stdout).toMatch(/ 403$/);
    const direct = "unset http_proxy HTTP_PROXY all_proxy ALL_PROXY;";
    expect((await server.sh(box, `${direct} ${line("denied.test")}`)).stdout).toMatch(/"policy".* 403$/s);
    expect((await curl("denied.test", "-p")).end?.exitCode).not.toBe(0);
    expect([heard, resolver.asked]).toEqual([["GET open.test/"], []]);
    const { records } = await server.client.call("listAudit", { sandbox: box });
    expect(records.find(({ label, target }) => label === "DENIED" && target === `denied.test:${port}`)).toMatchObject({
      rule: "host: denied.test",
    });
  });

  test("NET-2: production is denied whatever allows it", async () => {
    expect((await curl("prod.test")).stdout).toMatch(/"production".* 403$/s);
    expect([heard, resolver.asked]).toEqual([[], []]);
  });

  test("a host that is asked about waits for a person, and goes through once", async () => {
    const command = await background(line("asked.test", "-d x=1", "/orders"));
    const asked = await question();
    expect(asked).toMatchObject({ kind: "host", target: `asked.test:${port}`, rule: "host: asked.test" });
    expect([heard, resolver.asked]).toEqual([[], []]);
    // Nothing of it is in the ledger before it may be sent.
    expect((await server.client.call("listEffects", { sandbox: box })).effects).toEqual([]);
    await answer(asked.id, "once");
    expect((await ended(command)).stdout).toBe("hello 200");
    expect(heard).toEqual(["POST asked.test/orders"]);
    const { records } = await server.client.call("listAudit", { sandbox: box });
    expect(records.find(({ label, target }) => label === "APPROVED" && target === `asked.test:${port}`)?.arguments).toMatchObject({
      approval: asked.id,
    });
    // The yes is used up.
    const again = await background(line("asked.test"));
    const next = await question();
    expect(next.id).not.toBe(asked.id);
    await answer(next.id, "deny");
    expect((await ended(again)).stdout).toMatch(/"policy".* 403$/s);
    expect((await curl("asked.test")).stdout).toMatch(/"policy".* 403$/s);
    expect(heard).toEqual(["POST asked.test/orders"]);
  });

  test("a late approval counts for the next try; a program inside can't give it", async () => {
    await server.sh(box, `${line("later.asked.test", "--max-time 1")}; true`);
    const asked = await question();
    const inside = `curl -sS -w ' %{http_code}' -X POST http://localhost:4097/sandbox/self/approvals/${asked.id} -d '{"answer":"once"}'`;
    expect((await server.sh(box, inside)).stdout).toMatch(/ 40\d$/);
    expect((await server.client.call("inspectApproval", { approval: asked.id })).state).toBe("waiting");
    await answer(asked.id, "once");
    expect((await curl("later.asked.test")).stdout).toBe("hello 200");
  });

  test("a change of the policy ends what is open within 5 seconds, and nothing else", async () => {
    const slow = await background(line("open.test", "-m 30", "/slow"));
    const other = await background(line("fine.test", "-m 30", "/slow"));
    await eventually(
      () => heard.toSorted(),
      (all) => all.join() === "GET fine.test/slow,GET open.test/slow",
    );
    const began = performance.now();
    await rules({ "open.test": "deny" });
    expect((await ended(slow)).end?.exitCode).not.toBe(0);
    expect(performance.now() - began).toBeLessThan(5_000);
    expect((await curl("open.test")).stdout).toMatch(/"policy".* 403$/s);
    expect((await server.client.call("inspectCommand", { sandbox: box, command: other })).running).toBe(true);
    await server.client.call("killCommand", { sandbox: box, command: other });
    await rules({});
    expect((await curl("open.test")).stdout).toBe("hello 200");
  });

  test("the level of the sandbox counts for hosts that no config names, from the next request on", async () => {
    // A name that leads to no public address: what is asked about is told from what is looked up.
    resolver.names.set("web.example", ["127.0.0.2"]);
    const other = (await server.create({ level: 1 })).id;
    const before = await server.sh(other, "curl -sS -m 1 http://web.example/; true");
    expect(before.stdout).toBe("");
    expect(resolver.asked).toEqual([]);
    const [asked] = (await server.client.call("listApprovals", {})).approvals.filter(({ sandbox }) => sandbox === other);
    expect(asked).toMatchObject({ target: "web.example:80" });
    await server.client.call("setPolicy", { sandbox: other, yolo: 2, approver: server.approver() });
    expect((await server.sh(other, "curl -sS http://web.example/")).stdout).toContain("private_address");
    await server.client.call("removeSandbox", { sandbox: other });
  });

  test("POL-5: `always` lets the host through from then on, in the proxy and for agents that ask first, until it is forgotten", async () => {
    const command = await background(line("always.asked.test"));
    const { id } = await question();
    await answer(id, "always");
    expect((await ended(command)).stdout).toBe("hello 200");
    expect((await curl("always.asked.test")).stdout).toBe("hello 200");
    expect((await curl("denied.test")).stdout).toMatch(/ 403$/);
    const decide = () => server.client.call("decideAction", { sandbox: box, action: { kind: "host", host: "always.asked.test" } });
    expect(await decide()).toMatchObject({ verdict: "allow", rule: "always: host: always.asked.test" });
    await server.client.call("forgetRule", { rule: id });
    expect(await decide()).toMatchObject({ verdict: "ask" });
    expect((await curl("always.asked.test", "--max-time 1")).end?.exitCode).not.toBe(0);
  });
});
