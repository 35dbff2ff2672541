/** NET-4, NET-6: requests inside TLS that is opened, one after the other: what they may become, how they end, and who has a say. */
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect, type TLSSocket } from "node:tls";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { Ledger } from "../../src/rules/effects/ledger.ts";
import { BoundHost } from "../support/bound-host.ts";
import { aSandboxRow } from "../support/rows.ts";
import { eventually } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const VALUE = "canary-value-91c4e2b7";
const BINDING = { hosts: ["bound.test"], methods: [], path: null, header: null };

describe("requests in TLS to a host with a secret", needs("openssl"), () => {
  let host: BoundHost;
  let placeholder: string;
  const bearer = (): string => `Authorization: Bearer ${placeholder}`;

  beforeAll(async () => {
    host = await BoundHost.open();
    ({ placeholder } = await host.keep("key", VALUE, BINDING));
  });
  beforeEach(() => {
    host.heard.length = host.lab.records.length = 0;
    host.answer = (_, response) => response.end("done");
  });
  afterAll(() => host.close());

  test("PX-15: WebSockets, h2c and HTTP/2 get no tunnel through", async () => {
    const upgrade = (to: string): string[] => ["Connection: Upgrade", `Upgrade: ${to}`, bearer(), "HTTP2-Settings: AAMAAABkAAQAAP__"];
    for (const to of ["websocket", "h2c"]) {
      const tls = await host.secured();
      tls.write(`GET /ws HTTP/1.1\r\nHost: bound.test\r\n${upgrade(to).join("\r\n")}\r\n\r\n`);
      expect(String((await once(tls, "data"))[0])).toMatch(/^HTTP\/1.1 400 /);
      tls.destroy();
    }
    expect(host.heard).toEqual([]);
    // A host that upgrades all the same is cut off.
    host.answer = (request) =>
      request.socket.end("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nraw");
    expect(await host.ask("GET /ws")).toMatch(/^HTTP\/1.1 502 /);
    host.answer = (_, response) => response.end("done");
    expect(await host.say("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")).toMatch(/^(HTTP\/1.1 400 |$)/);
    const both = await host.secured("bound.test", host.port, { ALPNProtocols: ["h2", "http/1.1"] });
    expect(both.alpnProtocol).toBe("http/1.1");
    both.destroy();
    const only = connect({ socket: await host.tunnel(), servername: "bound.test", ALPNProtocols: ["h2"], rejectUnauthorized: false });
    expect(((await once(only, "error")) as [Error])[0].message).toContain("no application protocol");
  });

  test("PX-09: one connection carries many requests, each decided and recorded by itself; what two readers could read differently is refused", async () => {
    const answer = await host.say(
      `GET /1 HTTP/1.1\r\nHost: bound.test\r\n\r\nPOST /2 HTTP/1.1\r\nHost: bound.test:${host.port}\r\nContent-Length: 3\r\n\r\nabcGET /3 HTTP/1.1\r\nHost: bound.test\r\nConnection: close\r\n\r\n`,
    );
    expect(answer.match(/HTTP\/1.1 200 /g)).toHaveLength(3);
    expect(host.heard.map(({ line, body }) => `${line} ${body.toString()}`.trim())).toEqual(["GET /1", "POST /2 abc", "GET /3"]);
    // The tunnel itself makes no connection.
    const recorded = host.lab.records.filter(({ ended }) => ended === undefined);
    expect(recorded.map(({ method, path, verdict }) => `${method} ${path} ${verdict}`)).toEqual([
      "GET /1 allow",
      "POST /2 allow",
      "GET /3 allow",
    ]);
    const ends = await eventually(
      () => host.lab.records.filter(({ protocol, ended }) => protocol === "https" && ended !== undefined),
      ({ length }) => length === 3,
    );
    for (const { ended } of ends) expect(Math.min(ended?.sentBytes ?? 0, ended?.receivedBytes ?? 0)).toBeGreaterThan(50);
    host.heard.length = 0;
    for (const head of [
      "Host: bound.test\r\nHost: bound.test\r\n",
      "Host: bound.test\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n",
      "Host: bound.test\r\nContent-Length: 3\r\nContent-Length: 4\r\n",
      "Host: bound.test@other.test\r\n",
    ])
      expect(await host.say(`POST /x HTTP/1.1\r\n${head}\r\nabc`), head).toMatch(/^HTTP\/1.1 400 /);
    expect(host.heard).toEqual([]);
  });

  test("what is under way ends with the rules that allowed it, and with the client that asked for it", async () => {
    const closed: string[] = [];
    host.answer = (request, response) => {
      response.once("close", () => closed.push(request.url ?? ""));
      response.writeHead(200).write("begun\n");
    };
    const begin = async (path: string): Promise<TLSSocket> => {
      const tls = await host.secured();
      let text = "";
      tls.on("data", (chunk: Buffer) => (text += chunk.toString()));
      tls.write(`GET ${path} HTTP/1.1\r\nHost: bound.test\r\n\r\n`);
      await eventually(
        () => text,
        (said) => said.includes("begun"),
      );
      return tls;
    };
    const [kept, left] = [await begin("/kept"), await begin("/left")];
    left.destroy();
    await eventually(
      () => closed,
      (paths) => paths.includes("/left"),
    );
    expect(closed).toEqual(["/left"]);
    const end = new Promise((resolve) => kept.once("close", resolve));
    await host.lab.set({ production: ["bound.test"] });
    await end;
    await eventually(
      () => closed,
      (paths) => paths.includes("/kept"),
    );
    // An open connection gets no further request through.
    const idle = host.secured();
    await expect(idle).rejects.toThrow(/403/);
    await host.lab.set({});
  });

  test("a body that waits for a go-ahead, and large ones in both directions, come through whole", async () => {
    const tls: TLSSocket = await host.secured();
    tls.write(`PUT /x HTTP/1.1\r\nHost: bound.test\r\nExpect: 100-continue\r\nContent-Length: 5\r\nConnection: close\r\n\r\n`);
    expect(String((await once(tls, "data"))[0])).toMatch(/^HTTP\/1.1 100 /);
    tls.write("later");
    await once(tls.resume(), "close");
    expect(host.last.body.toString()).toBe("later");
    const large = randomBytes(24 * 1024 ** 2);
    const digest = createHash("sha256").update(large).digest("hex");
    host.answer = (_, response, body) => response.writeHead(200, ["Content-Length", String(body.length)]).end(body);
    const pieces = [
      `PUT /x HTTP/1.1\r\nHost: bound.test\r\nConnection: close\r\n${bearer()}\r\nTransfer-Encoding: chunked\r\n\r\n`,
      `${large.length.toString(16)}\r\n`,
      large,
      "\r\n0\r\n\r\n",
    ];
    const back = Buffer.from(await host.say(pieces), "latin1");
    expect(createHash("sha256").update(host.last.body).digest("hex")).toBe(digest);
    const body = back.subarray(back.indexOf("\r\n\r\n") + 4);
    expect(back.toString("latin1", 0, 500)).toContain(`Content-Length: ${large.length}`);
    expect(createHash("sha256").update(body).digest("hex")).toBe(digest);
  });
});

describe("effects over TLS that are held", needs("openssl"), () => {
  test("NET-6: after the time to wait the answer is 403 with the id; after a yes the same request is sent, with its secret, once", async () => {
    const host = await BoundHost.open((parts) => new Ledger({ ...parts, holdMs: 200 }));
    try {
      const { approvals } = host;
      await host.store.change((change) => change.sandboxes.put(aSandboxRow({ id: "one" })));
      await host.lab.set({ effects: "hold" });
      const { placeholder } = await host.keep("key", VALUE, BINDING);
      const post = (): Promise<string> => host.ask("POST /orders", [`Authorization: Bearer ${placeholder}`, "Content-Length: 3"], "a=1");
      const first = await post();
      const [asked] = await approvals.list(false);
      expect(first).toMatch(/^HTTP\/1.1 403 /);
      expect(first).toContain(asked?.id);
      expect(host.heard).toEqual([]);
      await approvals.answer(asked?.id ?? "", "once", readFileSync(host.approverToken, "utf8").trim());
      expect(await post()).toMatch(/^HTTP\/1.1 200 /);
      expect(host.heard.map(({ line, body, headers }) => `${line} ${body.toString()} ${headers.authorization}`)).toEqual([
        `POST /orders a=1 Bearer ${VALUE}`,
      ]);
      expect(await post()).toMatch(/^HTTP\/1.1 403 /);
      expect(host.heard).toHaveLength(1);
      const entries = await host.store.effects.list({}, { limit: 10 });
      expect(entries.map(({ state, status }) => `${state} ${status}`)).toEqual(["held null", "answered 200"]);
      expect(JSON.stringify(entries)).not.toContain(VALUE);
    } finally {
      await host.close();
    }
  });
});

describe("receipts of effects", needs("openssl"), () => {
  test("NET-6: are the host's own answers: of a request that the proxy refused there is none", async () => {
    const host = await BoundHost.open((parts) => new Ledger(parts));
    try {
      await host.keep("key", VALUE, { ...BINDING, hosts: ["bound.test", "self.test"] });
      const own = host.certificate("self", ["self.test"]);
      const port = await host.serve(own.key, own.cert, ["self.test"]);
      expect(await host.ask("POST /refused", ["Content-Length: 0"], "", "self.test", port)).toMatch(/^HTTP\/1.1 502 /);
      host.answer = (_, response) => response.writeHead(502, { "x-viv-code": "unreachable" }).end();
      expect(await host.ask("POST /answered", ["Content-Length: 0"])).toMatch(/^HTTP\/1.1 502 /);
      const entries = await eventually(
        () => host.store.effects.list({}, { limit: 10 }),
        (all) => all.every(({ state }) => state !== "sent"),
      );
      expect(entries.map(({ url, state, status }) => `${new URL(url).pathname} ${state} ${status}`).toSorted()).toEqual([
        "/answered answered 502",
        "/refused broken null",
      ]);
    } finally {
      await host.close();
    }
  });
});

describe("the policy's say in TLS that is opened", needs("openssl"), () => {
  test("a yes of a person to the tunnel counts for all requests in it, as long as the policy does", async () => {
    let [asked, stands] = [0, true];
    const host = await BoundHost.open();
    host.lab.judge = async (_, __, ruling) => ({ ...ruling, approval: `question-${(asked += 1)}` });
    host.lab.standing = async () => () => stands;
    try {
      await host.keep("key", VALUE, BINDING);
      const tls = await host.secured();
      const next = async (): Promise<string> => {
        tls.write("GET /x HTTP/1.1\r\nHost: bound.test\r\n\r\n");
        return String((await once(tls, "data"))[0]);
      };
      for (let request = 0; request < 3; request += 1) expect(await next()).toMatch(/^HTTP\/1.1 200 /);
      expect(asked).toBe(1);
      expect(host.lab.records.filter(({ protocol, ended }) => protocol === "https" && ended === undefined)).toMatchObject(
        Array.from({ length: 3 }, () => ({ approval: "question-1", verdict: "allow" })),
      );
      stands = false;
      expect(await next()).toMatch(/^HTTP\/1.1 403 .*policy/s);
      expect(host.heard).toHaveLength(3);
    } finally {
      await host.close();
    }
  });
});
