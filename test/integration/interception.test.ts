/** NET-4, NET-6: TLS to hosts with a secret, spoken to as a program inside does, against a host of the test. */
import { once } from "node:events";
import { createHash, randomBytes, X509Certificate } from "node:crypto";
import { request as plainRequest } from "node:http";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { connect, type TLSSocket } from "node:tls";
import { gunzipSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { Approvals } from "../../src/approvals/approvals.ts";
import { Audit } from "../../src/audit/audit.ts";
import { Ledger } from "../../src/effects/ledger.ts";
import { SecretInterceptor } from "../../src/secrets/interceptor.ts";
import { Sealing } from "../../src/secrets/sealing.ts";
import { Secrets } from "../../src/secrets/secrets.ts";
import { BoundHost } from "../support/bound-host.ts";
import { aSandboxRow } from "../support/rows.ts";
import { eventually } from "../support/server.ts";
import { needs } from "../support/skip.ts";

const VALUE = "canary-value-91c4e2b7";

describe("TLS to a host with a secret", needs("openssl"), () => {
  let host: BoundHost;
  let placeholder: string;
  const bearer = (): string => `Authorization: Bearer ${placeholder}`;
  const everything = (): string => JSON.stringify(host.heard.map(({ line, raw, body }) => [line, raw, body.toString("latin1")]));

  beforeAll(async () => {
    host = await BoundHost.open();
    const binding = { hosts: ["bound.test", "expired.test", "self.test", "wrong.test"], methods: [], path: null, header: null };
    ({ placeholder } = await host.secrets.set("key", VALUE, binding));
  });
  beforeEach(() => {
    host.heard.length = host.lab.records.length = 0;
    host.answer = (_, response) => response.end("done");
  });
  afterAll(() => host.close());

  test("SC-03: the value goes into headers and logins of Basic, whole", async () => {
    expect(await host.ask("GET /a", [bearer(), `X-Twice: ${placeholder},${placeholder}`])).toMatch(/^HTTP\/1.1 200 .*done$/s);
    expect(host.last.headers.authorization).toBe(`Bearer ${VALUE}`);
    expect(host.last.headers["x-twice"]).toBe(`${VALUE},${VALUE}`);
    await host.ask("GET /a", [`Authorization: Basic ${Buffer.from(`me:${placeholder}`).toString("base64")}`]);
    expect(host.last.headers.authorization).toBe(`Basic ${Buffer.from(`me:${VALUE}`).toString("base64")}`);
  });

  test("SC-03: not into queries, paths, bodies, split or packed bodies, names of headers, or parts of a placeholder", async () => {
    const packed = gzipSync(placeholder);
    const half = placeholder.length / 2;
    const chunks = [placeholder.slice(0, half), placeholder.slice(half)].map((part) => `${part.length.toString(16)}\r\n${part}\r\n`);
    const head = (more: string): string => `POST /p HTTP/1.1\r\nHost: bound.test\r\nConnection: close\r\n${more}\r\n`;
    await host.ask(`GET /q?key=${placeholder}&x=1`);
    await host.ask(`GET /p/${placeholder}`);
    await host.ask("POST /b", [`Content-Length: ${placeholder.length}`], placeholder);
    expect(host.last.body.toString()).toBe(placeholder);
    await host.say([head("Transfer-Encoding: chunked\r\n"), ...chunks, "0\r\n\r\n"]);
    expect(host.last.body.toString()).toBe(placeholder);
    await host.say([head(`Content-Encoding: gzip\r\nContent-Length: ${packed.length}\r\n`), packed]);
    expect(gunzipSync(host.last.body).toString()).toBe(placeholder);
    await host.ask("GET /n", [`X-${placeholder}: 1`]);
    await host.ask("GET /h", [`X-Half: ${placeholder.slice(0, -1)}`, `X-Coded: ${Buffer.from(placeholder).toString("base64")}`]);
    expect(host.last.headers["x-half"]).toBe(placeholder.slice(0, -1));
    expect(host.heard.map(({ line }) => line)).toHaveLength(7);
    expect(everything()).not.toContain(VALUE);
    // The same host does get it where it belongs.
    await host.ask("GET /a", [bearer()]);
    expect(everything()).toContain(VALUE);
  });

  test("SC-03: where the rule names a header, method or path, nowhere else", async () => {
    const { placeholder: narrow } = await host.secrets.set("narrow", "narrow-value-5512", {
      hosts: ["bound.test"],
      methods: ["POST"],
      path: "/v1",
      header: "X-Gate: {}",
    });
    await host.ask("POST /v1/orders", [`X-Gate: ${narrow}`, `X-Other: ${narrow}`, "Content-Length: 0"]);
    expect(host.last.headers).toMatchObject({ "x-gate": "narrow-value-5512", "x-other": narrow });
    for (const line of ["GET /v1/orders", "POST /v2", "POST /v1/../v2", "POST /v10"]) {
      await host.ask(line, [`X-Gate: ${narrow}`, "Content-Length: 0"]);
      expect(host.last.headers["x-gate"], line).toBe(narrow);
    }
  });

  test("SC-08: the name of a bound host in TLS or Host gets nothing where the tunnel leads elsewhere", async () => {
    const { port } = host;
    host.lab.opened.push({ host: "127.0.0.2", ports: [port], tcp: false });
    for (const [to, servername] of [
      ["other.test", "bound.test"],
      ["127.0.0.2", "bound.test"],
    ] as const) {
      const socket = await host.tunnel(to, port);
      const tls = connect({ socket, servername, rejectUnauthorized: false });
      tls.on("error", () => undefined);
      tls.write(`GET /x HTTP/1.1\r\nHost: bound.test\r\n${bearer()}\r\n\r\n`);
      await new Promise((resolve) => tls.once("close", resolve));
    }
    expect(host.lab.records.filter(({ verdict }) => verdict === "deny").map(({ code }) => code)).toEqual([
      "wrong_tls_name",
      "wrong_tls_name",
    ]);
    // To a host of another name the bytes go as they are.
    const socket = await host.tunnel("other.test", port);
    const tls = connect({ socket, servername: "other.test" });
    tls.end(`GET /x HTTP/1.1\r\nHost: bound.test\r\nConnection: close\r\n${bearer()}\r\n\r\n`);
    await once(tls.resume(), "close");
    expect(host.last.headers.authorization).toBe(`Bearer ${placeholder}`);
    // And a request for another Host inside the bound one's TLS is none.
    expect(await host.say(`GET /x HTTP/1.1\r\nHost: other.test\r\n${bearer()}\r\n\r\n`)).toMatch(/^HTTP\/1.1 400 /);
    expect(await host.say(`GET https://other.test/x HTTP/1.1\r\nHost: bound.test\r\n${bearer()}\r\n\r\n`)).toMatch(/^HTTP\/1.1 400 /);
    expect(everything()).not.toContain(VALUE);
    await host.ask("GET /x", [bearer()]);
    expect(everything()).toContain(VALUE);
  });

  test("SC-07: a host that is expired, vouched for by nobody, or somebody else gets no request", async () => {
    const expired = host.certificate("expired", ["expired.test"], ["20200101000000Z", "20200102000000Z"]);
    const own = host.certificate("self", ["self.test"]);
    const ports = {
      "expired.test": await host.serve(expired.key, expired.cert, ["expired.test"]),
      "self.test": await host.serve(own.key, own.cert, ["self.test"]),
      "wrong.test": host.port,
    };
    host.lab.names.set("wrong.test", ["127.0.0.2"]);
    host.lab.opened.push({ host: "wrong.test", ports: [host.port], tcp: false });
    for (const [name, port] of Object.entries(ports))
      expect(await host.ask("GET /x", [bearer()], "", name, port), name).toMatch(
        /^HTTP\/1.1 502 .*(CERT_HAS_EXPIRED|SELF_SIGNED|ALTNAME_INVALID)/s,
      );
    expect(host.heard).toEqual([]);
    expect(host.lab.records.filter(({ protocol, code }) => protocol === "https" && code === "unreachable")).toHaveLength(3);
  });

  test("SC-09: requests that would be sent back are refused, and OPTIONS carries nothing", async () => {
    host.answer = (request, response) => response.end(`${request.method} ${request.rawHeaders.join("\n")}`);
    // Without the proxy the host does send it back.
    const port = await host.unprotected();
    const echoed = await new Promise<string>((resolve, reject) => {
      const sent = plainRequest({ host: "127.0.0.2", port, method: "TRACE", headers: { authorization: VALUE } }, (answer) => {
        let text = "";
        answer.on("data", (chunk: Buffer) => (text += chunk.toString())).on("end", () => resolve(text));
      });
      sent.on("error", reject).end();
    });
    expect(echoed).toContain(VALUE);
    host.heard.length = 0;
    for (const method of ["TRACE", "TRACK"]) expect(await host.ask(`${method} /x`, [bearer()])).toMatch(/^HTTP\/1.1 400 /);
    expect(host.heard).toEqual([]);
    const options = await host.ask("OPTIONS /x", [bearer(), "Max-Forwards: 0"]);
    expect(options).toContain(placeholder);
    expect(everything()).not.toContain(VALUE);
  });

  test("SC-10: an answer that repeats the secret shows asterisks: in headers, in bodies, cut anywhere, as a login of Basic", async () => {
    const basic = Buffer.from(`me:${VALUE}`).toString("base64");
    host.answer = (request, response) => {
      const said = String(request.headers.authorization);
      response.writeHead(200, { "x-echo": said, "content-type": "application/json" });
      for (const letter of JSON.stringify({ authorization: said, again: VALUE })) response.write(letter);
      response.end();
    };
    const answer = await host.ask("GET /x", [bearer(), "Accept-Encoding: gzip"]);
    expect(host.last.headers).toMatchObject({ authorization: `Bearer ${VALUE}`, "accept-encoding": "identity" });
    expect(answer).not.toContain(VALUE);
    expect(answer).toContain(`x-echo: Bearer ${"*".repeat(VALUE.length)}`);
    const login = await host.ask("GET /x", [`Authorization: Basic ${Buffer.from(`me:${placeholder}`).toString("base64")}`]);
    expect(host.last.headers.authorization).toBe(`Basic ${basic}`);
    expect(login).not.toContain(basic);
    expect(login).not.toContain(VALUE);
    // The length that was announced is the length that comes.
    host.answer = (_, response) => response.writeHead(200, { "content-length": VALUE.length }).end(VALUE);
    expect(await host.ask("GET /x", [bearer()])).toMatch(new RegExp(`\r\n\r\n\\*{${VALUE.length}}$`));
    await host.ask("GET /x", ["Accept-Encoding: gzip"]);
    expect(host.last.headers["accept-encoding"]).toBe("gzip");
  });

  test("SC-12: the certificate names the host that was asked for, and no other; the authority signs nothing but that", async () => {
    const tls = await host.secured();
    const peer = tls.getPeerCertificate();
    tls.destroy();
    expect(peer.subjectaltname).toBe("DNS:bound.test");
    const authority = new X509Certificate(Object.values(host.interceptor.files({}))[0] ?? "");
    const leaf = new X509Certificate(peer.raw);
    expect([leaf.ca, authority.ca, leaf.checkIssued(authority), leaf.verify(authority.publicKey)]).toEqual([false, true, true, true]);
    expect(leaf.checkHost("other.test")).toBeUndefined();
    expect(Date.parse(leaf.validTo) - Date.now()).toBeLessThan(31 * 24 * 3_600_000);
    // Nobody opens a host without a secret: its own certificate comes through.
    const other = connect({ socket: await host.tunnel("other.test"), servername: "other.test" });
    await once(other, "secureConnect");
    expect(other.getPeerCertificate().subject.CN).toBe("good");
    other.destroy();
  });

  test("SC-13: a replaced secret is used by the next request of a connection that is open, a removed one by none", async () => {
    const { placeholder: own } = await host.secrets.set("turning", "first-value-1111", {
      hosts: ["bound.test"],
      methods: [],
      path: null,
      header: null,
    });
    const tls = await host.secured();
    const next = async (): Promise<string | undefined> => {
      const before = host.heard.length;
      tls.write(`GET /x HTTP/1.1\r\nHost: bound.test\r\nX-Key: ${own}\r\n\r\n`);
      await eventually(
        () => host.heard.length,
        (length) => length > before,
      );
      return String(host.last.headers["x-key"]);
    };
    expect(await next()).toBe("first-value-1111");
    await host.secrets.set("turning", "second-value-2222", { hosts: ["bound.test"], methods: [], path: null, header: null });
    expect(await next()).toBe("second-value-2222");
    await host.secrets.remove("turning");
    expect(await next()).toBe(own);
    tls.destroy();
  });

  test("SC-10: a secret that does not open any more is sent to nobody, and the answer says so without it", async () => {
    const lost = await BoundHost.open();
    try {
      const { placeholder: own } = await lost.secrets.set("key", VALUE, { hosts: ["bound.test"], methods: [], path: null, header: null });
      writeFileSync(join(lost.place, "secrets-key"), `${"0".repeat(64)}\n`);
      const audit = new Audit(lost.store, join(lost.place, "anchor"), () => undefined);
      const secrets = await Secrets.open(lost.store, audit, new Sealing(join(lost.place, "secrets-key")));
      lost.lab.interceptor = new SecretInterceptor(secrets, lost.place);
      const answer = await lost.ask("GET /x", [`Authorization: Bearer ${own}`]);
      expect(answer).toMatch(/^HTTP\/1.1 502 .*can't be opened/s);
      expect(answer).not.toContain(VALUE);
      expect(lost.heard).toEqual([]);
    } finally {
      await lost.close();
    }
  });

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
    const recorded = host.lab.records.filter(({ protocol, ended }) => protocol === "https" && ended === undefined);
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
    let ledger: Ledger | undefined;
    const host = await BoundHost.open({
      effects: (store) => (ledger = new Ledger(store, { info: () => undefined, warn: () => undefined }, { holdMs: 200 })),
    });
    try {
      const token = join(host.place, "approver-token");
      const approvals = new Approvals(host.store, new Audit(host.store, join(host.place, "anchor"), () => undefined), token);
      if (ledger !== undefined) ledger.approvals = approvals;
      await host.store.change((change) => change.putSandbox(aSandboxRow({ id: "one" })));
      await host.lab.set({ effects: "hold" });
      const { placeholder } = await host.secrets.set("key", VALUE, { hosts: ["bound.test"], methods: [], path: null, header: null });
      const post = (): Promise<string> => host.ask("POST /orders", [`Authorization: Bearer ${placeholder}`, "Content-Length: 3"], "a=1");
      const first = await post();
      const [asked] = await approvals.list(false);
      expect(first).toMatch(/^HTTP\/1.1 403 /);
      expect(first).toContain(asked?.id);
      expect(host.heard).toEqual([]);
      await approvals.answer(asked?.id ?? "", "once", readFileSync(token, "utf8").trim());
      expect(await post()).toMatch(/^HTTP\/1.1 200 /);
      expect(host.heard.map(({ line, body, headers }) => `${line} ${body.toString()} ${headers.authorization}`)).toEqual([
        `POST /orders a=1 Bearer ${VALUE}`,
      ]);
      expect(await post()).toMatch(/^HTTP\/1.1 403 /);
      expect(host.heard).toHaveLength(1);
      const entries = await host.store.effects({ limit: 10 });
      expect(entries.map(({ state, status }) => `${state} ${status}`)).toEqual(["held null", "answered 200"]);
      expect(JSON.stringify(entries)).not.toContain(VALUE);
    } finally {
      await host.close();
    }
  });
});

describe("the policy's say in TLS that is opened", needs("openssl"), () => {
  test("a yes of a person to the tunnel counts for all requests in it, as long as the policy does", async () => {
    let [asked, stands] = [0, true];
    const host = await BoundHost.open({
      judge: {
        judge: async (_, __, ruling) => ({ ...ruling, approval: `question-${(asked += 1)}` }),
        standing: async () => () => stands,
      },
    });
    try {
      await host.secrets.set("key", VALUE, { hosts: ["bound.test"], methods: [], path: null, header: null });
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
