/** The server killed at each step of a request on its way out: nothing goes out unrecorded, and nothing is let out by the fall. */
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener, type Server } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { certificate } from "../support/certificates.ts";
import { TestResolver } from "../support/origins.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

describe("a request whose server is killed", needs("root", "curl"), () => {
  let resolver: TestResolver;
  let web: Server;
  let secureWeb: Server;
  let port: number;
  let securePort: number;
  let place: string;
  let server: TestServer;
  let box: string;
  const heard: string[] = [];
  let connections = 0;

  beforeAll(async () => {
    resolver = await TestResolver.open();
    for (const name of ["open.test", "asked.test", "denied.test"]) resolver.names.set(name, ["127.0.0.2"]);
    place = mkdtempSync(join(tmpdir(), "viv-egress-"));
    const answer: RequestListener = (request, response) => {
      heard.push(`${request.method} ${request.headers.host?.split(":")[0]}${request.url}`);
      if (request.url === "/slow") response.write("first ");
      else response.end("hello");
    };
    web = createServer(answer);
    secureWeb = createSecureServer(certificate(place, "open.test"), answer);
    [port = 0, securePort = 0] = await Promise.all(
      [web, secureWeb].map(async (one) => {
        one.on("connection", () => (connections += 1));
        one.listen(0, "127.0.0.2");
        await once(one, "listening");
        return (one.address() as AddressInfo).port;
      }),
    );
    const opened = ["open.test", "asked.test", "denied.test"].map((host) => ({ host, ports: [port, securePort] }));
    server = await TestServer.start({ config: { spares: false, network: { private: opened, resolvers: [resolver.address] } } });
    const policy = { host: { "asked.test": "ask", "denied.test": "deny" } };
    writeFileSync(join(server.project, "vivarium.json"), JSON.stringify({ policy }));
    box = (await server.create()).id;
  });
  beforeEach(() => {
    heard.length = connections = 0;
  });
  afterAll(async () => {
    for (const one of [web, secureWeb]) {
      one.close();
      one.closeAllConnections();
    }
    resolver.close();
    rmSync(place, { recursive: true, force: true });
    await server?.remove();
  });

  const line = (host: string, path: string, words = ""): string => `curl -sS -m 20 ${words} http://${host}:${port}${path}`;
  const start = async (text: string): Promise<string> =>
    (await server.client.call("runCommand", { sandbox: box, command: ["/bin/sh", "-c", text], background: true })).id;
  const exitCode = async (command: string): Promise<number | null | undefined> =>
    (
      await eventually(
        () => server.client.call("inspectCommand", { sandbox: box, command }),
        ({ running }) => !running,
      )
    ).end?.exitCode;
  const requests = async () =>
    (await server.client.call("listAudit", { sandbox: box })).records.filter(({ action }) => action === "network.request");
  const records = async (path: string) =>
    (await requests()).filter(({ arguments: details }) => (details as { path?: string }).path === path);

  /** Lets a request run into the end of the server at a point, and starts the next server. How the request ended. */
  async function killedAt(point: string, text: string): Promise<number | null | undefined> {
    await server.arm(point);
    const command = await start(`rm -f /tmp/go; until [ -e /tmp/go ]; do sleep 0.02; done; ${text}`);
    // It may be the last thing that the server does.
    await server.sh(box, "touch /tmp/go").catch(() => undefined);
    await server.died();
    const soFar = [heard.length, connections];
    await server.up();
    const code = await exitCode(command);
    expect([heard.length, connections]).toEqual(soFar);
    expect(await server.client.call("verifyAudit", {})).toMatchObject({ whole: true });
    return code;
  }

  test("PX-17, NET-3: before it is recorded, nothing has gone out", async () => {
    expect(await killedAt("network.judged", line("open.test", "/judged"))).not.toBe(0);
    expect([heard, connections]).toEqual([[], 0]);
    expect((await server.sh(box, line("open.test", "/judged"))).stdout).toBe("hello");
    expect(await records("/judged")).toHaveLength(1);
  });

  test.each(["network.recorded", "network.dialled"])("PX-17, NET-3: at %s its record is there after the fall", async (point) => {
    expect(await killedAt(point, line("open.test", `/${point}`, "-d a=1"))).not.toBe(0);
    expect(heard).toEqual([]);
    expect(await records(`/${point}`)).toMatchObject([{ label: "AUTONOMOUS (whitelisted)", target: `open.test:${port}` }]);
    const { effects } = await server.client.call("listEffects", { sandbox: box });
    expect(effects.find(({ url }) => url.endsWith(point))).toMatchObject({ method: "POST", status: null });
  });

  test.each(["GET", "POST"])("PX-17, NET-3: a %s is dialled once its record is there after a fall", async (method) => {
    expect(await killedAt("network.written", line("open.test", `/${method}`, `-X ${method}`))).not.toBe(0);
    expect([heard, connections]).toEqual([[], 0]);
    expect(await records(`/${method}`)).toMatchObject([{ label: "AUTONOMOUS (whitelisted)", target: `open.test:${port}` }]);
  });

  test("PX-17, NET-3: a plain request that falls at network.recorded was not sent, and its record is there", async () => {
    expect(await killedAt("network.recorded", line("open.test", "/plain"))).not.toBe(0);
    expect(heard).toEqual([]);
    expect(await records("/plain")).toMatchObject([{ label: "AUTONOMOUS (whitelisted)", target: `open.test:${port}` }]);
    expect((await server.sh(box, line("open.test", "/plain"))).stdout).toBe("hello");
  });

  test("PX-17: what is denied stays denied, before, during and after", async () => {
    expect(await killedAt("network.judged", line("denied.test", "/denied", "-f"))).not.toBe(0);
    expect((await server.sh(box, line("denied.test", "/denied"))).stdout).toContain('"policy"');
    expect([heard, connections]).toEqual([[], 0]);
  });

  test("PX-17: a question outlives the fall, and is no yes; the answer counts afterwards", async () => {
    expect(await killedAt("network.asked", line("asked.test", "/asked"))).not.toBe(0);
    expect([heard, connections]).toEqual([[], 0]);
    const { approvals } = await server.client.call("listApprovals", {});
    expect(approvals).toMatchObject([{ kind: "host", target: `asked.test:${port}`, state: "waiting" }]);
    const approver = server.approver();
    await server.client.call("answerApproval", { approval: approvals[0]?.id ?? "", answer: "once", approver });
    expect((await server.sh(box, line("asked.test", "/asked"))).stdout).toBe("hello");
    expect(heard).toEqual(["GET asked.test/asked"]);
  });

  test.each(["http", "https"])("PX-17, F-49, NET-3: while the answer comes by %s it is cut off, and was recorded", async (scheme) => {
    const fetch = (path: string): string =>
      scheme === "http" ? line("open.test", path) : `curl -sSk -m 20 https://open.test:${securePort}${path}`;
    const before = (await requests()).length;
    const command = await start(fetch("/slow"));
    await eventually(
      () => heard.length,
      (count) => count === 1,
    );
    await server.kill();
    await server.up();
    expect(await exitCode(command)).not.toBe(0);
    expect([heard.length, connections]).toEqual([1, 1]);
    expect(await requests()).toHaveLength(before + 1);
    expect((await server.sh(box, fetch("/after"))).stdout).toBe("hello");
  });
});
