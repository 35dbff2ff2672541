/** NET-4: TLS to hosts with a secret, spoken to as a program inside does, against a host of the test. */
import { once } from "node:events";
import { X509Certificate } from "node:crypto";
import { request as plainRequest } from "node:http";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { connect } from "node:tls";
import { gunzipSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { Audit } from "../../src/rules/audit/audit.ts";
import type { AuditRecord } from "../../src/base/schema/audit.ts";
import { SecretInterceptor } from "../../src/rules/secrets/interceptor.ts";
import { SealingKey } from "../../src/rules/secrets/sealing-key.ts";
import { Secrets } from "../../src/rules/secrets/secrets.ts";
import { BoundHost } from "../support/bound-host.ts";
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
    const binding = {
      hosts: ["bound.test", "expired.test", "self.test", `wrong.test:${host.port}`],
      methods: [],
      path: null,
      header: null,
    };
    ({ placeholder } = await host.keep("key", VALUE, binding));
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

  test("AU-10, AU-04: each request that carries a secret has one record of it, and without that it is not sent", async () => {
    const uses = async (): Promise<AuditRecord[]> =>
      (await host.store.audit.list({ after: 0, limit: 1000 })).filter(({ action }) => action === "secret.use");
    const before = (await uses()).length;
    await host.ask("GET /a?b=c", [bearer(), `X-Twice: ${placeholder}`]);
    await host.ask("GET /without");
    await host.ask("POST /b", [bearer(), "Content-Length: 0"]);
    const found = (await uses()).slice(before);
    expect(found.map(({ target, arguments: details, label }) => [target, details, label])).toEqual([
      ["key", { host: "bound.test", port: host.port, method: "GET", path: "/a" }, "AUTONOMOUS (whitelisted)"],
      ["key", { host: "bound.test", port: host.port, method: "POST", path: "/b" }, "AUTONOMOUS (whitelisted)"],
    ]);
    host.heard.length = 0;
    const full = vi.spyOn(host.store, "change").mockRejectedValue(new Error("The disk is full."));
    try {
      expect(await host.ask("GET /a", [bearer()])).toMatch(/^HTTP\/1.1 503 .*not_recorded/s);
      expect(await host.ask("GET /without")).toMatch(/^HTTP\/1.1 200 /);
    } finally {
      full.mockRestore();
    }
    expect(host.heard.map(({ line }) => line)).toEqual(["GET /without"]);
    expect(await host.ask("GET /a", [bearer()])).toMatch(/^HTTP\/1.1 200 /);
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
    const { placeholder: narrow } = await host.keep("narrow", "narrow-value-5512", {
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

  test("SC-07: a host whose certificate is expired, of an unknown authority, or of another name gets no request", async () => {
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
    const authority = new X509Certificate(Object.values(await host.interceptor.files({}))[0] ?? "");
    const leaf = new X509Certificate(peer.raw);
    expect([leaf.ca, authority.ca, leaf.checkIssued(authority), leaf.verify(authority.publicKey)]).toEqual([false, true, true, true]);
    expect(leaf.checkHost("other.test")).toBeUndefined();
    expect(Date.parse(leaf.validTo) - Date.now()).toBeLessThan(31 * 24 * 3_600_000);
    // The proxy does not open a host without a secret: its own certificate comes through.
    const other = connect({ socket: await host.tunnel("other.test"), servername: "other.test" });
    await once(other, "secureConnect");
    expect(other.getPeerCertificate().subject.CN).toContain("good of ");
    other.destroy();
  });

  test("SC-13: a replaced secret is used by the next request of a connection that is open, a removed one by none", async () => {
    const { placeholder: own } = await host.keep("turning", "first-value-1111", {
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
    await host.keep("turning", "second-value-2222", { hosts: ["bound.test"], methods: [], path: null, header: null });
    expect(await next()).toBe("second-value-2222");
    await host.secrets.remove("turning");
    expect(await next()).toBe(own);
    tls.destroy();
  });

  test("SC-10: a secret that does not open any more is sent to no host, and the answer says so without it", async () => {
    const lost = await BoundHost.open();
    try {
      const { placeholder: own } = await lost.keep("key", VALUE, { hosts: ["bound.test"], methods: [], path: null, header: null });
      writeFileSync(join(lost.place, "secrets-key"), `${"0".repeat(64)}\n`);
      const audit = new Audit(lost.store, join(lost.place, "anchor"), () => undefined);
      const secrets = await Secrets.open(lost.store, audit, new SealingKey(join(lost.place, "secrets-key")));
      lost.lab.interceptor = new SecretInterceptor(secrets, lost.place);
      const answer = await lost.ask("GET /x", [`Authorization: Bearer ${own}`]);
      expect(answer).toMatch(/^HTTP\/1.1 403 .*can't be opened/s);
      expect(answer).not.toContain(VALUE);
      expect(lost.heard).toEqual([]);
    } finally {
      await lost.close();
    }
  });
});
