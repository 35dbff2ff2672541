/** The server on an address that other computers reach: TLS or nothing, and who gets in. Each attack has a control beside it that does. */
import { X509Certificate } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "node:tls";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { listenChoice, type ListenWords } from "../../src/base/config/listen-choice.ts";
import { accessOf, doorOf, readTls, type Door } from "../../src/interfaces/api/door.ts";
import { startApi, TOKEN, type ApiServer } from "../support/api-server.ts";
import { certificate } from "../support/certificates.ts";
import { rawRequest, request, type RawAnswer } from "../support/raw-http.ts";
import { freePort } from "../support/server.ts";

const folder = mkdtempSync(join(tmpdir(), "viv-listen-"));
const json = { "content-type": "application/json" };
afterAll(() => rmSync(folder, { recursive: true }));

async function doorWith(words: ListenWords): Promise<Door> {
  const choice = listenChoice(words);
  if (choice === undefined) throw new Error("nothing says where to listen");
  return doorOf(choice, folder);
}

interface Login {
  readonly cookie: string;
  readonly "viv-key": string;
  readonly head: string;
}

async function login(api: ApiServer, send: Send): Promise<Login> {
  const { secret } = await api.sessions.link(api.port, false);
  const { status, head, body } = await send("POST /dashboard/login", json, JSON.stringify({ link: secret }));
  expect(status).toBe(200);
  // Names of cookies have upper and lower case; heads are read here without.
  const cookie = (/set-cookie: ([^;\r]+)/i.exec(head)?.[1] ?? "").replace("__host-", "__Host-");
  return { cookie, "viv-key": (JSON.parse(body) as { key: string }).key, head };
}

type Headers = Readonly<Record<string, string | undefined>>;
type Send = (line: string, headers?: Headers, body?: string) => Promise<RawAnswer>;

function present(headers: Headers): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter((entry): entry is [string, string] => entry[1] !== undefined));
}

describe("where the server may listen (API-3)", () => {
  const TLS = { cert: "/c.pem", key: "/k.pem" };

  it.each([["0.0.0.0:7411"], ["192.168.1.5:7411"], ["[::]:7411"], ["example.com:7411"]])("refuses %s without TLS", (address) => {
    expect(() => listenChoice({ address })).toThrow(/without TLS/);
    expect(listenChoice({ address, selfSigned: true })).toMatchObject({ tls: "self-signed", port: 7411 });
    expect(listenChoice({ address, ...TLS })).toMatchObject({ tls: TLS });
    expect(listenChoice({ address, behindProxy: "https://viv.example.com" })).toMatchObject({
      tls: "proxy",
      origin: "https://viv.example.com",
    });
  });

  it.each([["7411"], ["127.0.0.1:7411"], ["[::1]:7411"], ["localhost:7411"]])("takes %s as this machine alone", (address) => {
    expect(listenChoice({ address })).toMatchObject({ tls: "none", port: 7411 });
  });

  it.each([
    ["no port", { address: "0.0.0.0" }],
    ["a port that is none", { address: "127.0.0.1:70000" }],
    ["a key without a certificate", { address: "0.0.0.0:1", key: "/k" }],
    ["two ways at once", { address: "0.0.0.0:1", selfSigned: true, behindProxy: "https://a.example" }],
    ["a proxy without TLS", { address: "7411", behindProxy: "http://a.example" }],
    ["an address with a path", { address: "7411", behindProxy: "https://a.example/viv" }],
    ["TLS without a place", { selfSigned: true }],
    ["an address of browsers without TLS", { address: "7411", url: "https://a.example" }],
  ])("refuses %s with a sentence", (_, words) => {
    expect(() => listenChoice(words)).toThrow(expect.objectContaining({ code: "usage", remedy: expect.stringMatching(/\S/) }));
  });

  it("refuses files that no TLS can be spoken with, before anything is bound", () => {
    const { file } = certificate(folder, "one.example");
    const other = certificate(folder, "two.example");
    writeFileSync(join(folder, "none"), "none");
    expect(() => readTls({ cert: file, key: join(folder, "two.example.key") })).toThrow(/can't be used/);
    expect(() => readTls({ cert: join(folder, "none"), key: join(folder, "none") })).toThrow(/can't be used/);
    expect(() => readTls({ cert: join(folder, "gone"), key: join(folder, "none") })).toThrow(/can't be used/);
    expect(readTls({ cert: other.file, key: join(folder, "two.example.key") }).cert).toContain("CERTIFICATE");
  });
});

describe("a server with a certificate of the user's (API-3, AP-30)", () => {
  let api: ApiServer;
  let ca: Buffer;
  const host = "viv.example.com";
  let authority: string;
  let own: string;

  beforeAll(async () => {
    const { file, cert } = certificate(folder, host);
    ca = cert;
    const port = await freePort();
    api = await startApi({ door: await doorWith({ address: `127.0.0.1:${port}`, cert: file, key: join(folder, `${host}.key`) }) });
    authority = `${host}:${api.port}`;
    own = `https://${authority}`;
  });
  afterAll(() => api.close());

  /** As a browser sends it over TLS from a page of the dashboard, unless changed. */
  const send: Send = (line, changes = {}, body = "") => {
    const headers = present({ host: authority, origin: own, "sec-fetch-site": "same-origin", ...changes });
    const socket = connect({ host: "127.0.0.1", port: api.port, ca, servername: host });
    return rawRequest(socket, request(line, headers, body));
  };

  it("logs browsers in with a cookie that goes nowhere without TLS", async () => {
    const { cookie, "viv-key": key, head } = await login(api, send);
    expect(head).toMatch(/set-cookie: __host-viv-session-\d+=[\da-f]{64}; httponly; samesite=strict; path=\/; max-age=\d+; secure/i);
    expect((await send("GET /sandboxes", { cookie, "viv-key": key })).status).toBe(200);
  });

  it("says nothing to plain HTTP, also not with a cookie and key that were stolen", async () => {
    const { cookie, "viv-key": key } = await login(api, send);
    api.engine.calls.length = 0;
    const headers = present({ host: authority, origin: own, cookie, "viv-key": key });
    const answer = await rawRequest({ host: "127.0.0.1", port: api.port }, request("GET /sandboxes", headers));
    expect([answer.status, answer.head, answer.body]).toEqual([0, "", ""]);
    expect(api.engine.calls).toEqual([]);
    expect((await send("GET /sandboxes", { cookie, "viv-key": key })).status).toBe(200);
  });

  it.each([
    ["a name that was bound to this address", { host: "evil.example", origin: "https://evil.example" }],
    ["a name of the same certificate on another port", { host: "viv.example.com:1" }],
    ["this machine's own loopback", { host: "127.0.0.1" }],
    ["a name that a proxy would have told, where there is none", { host: "evil.example", "x-forwarded-host": "viv.example.com" }],
    ["a page of another site", { origin: "https://evil.example", "sec-fetch-site": "cross-site" }],
    ["a page of plain HTTP of the same name", { origin: "http://viv.example.com" }],
    ["a page of another port of the same name", { origin: "https://viv.example.com:1", "sec-fetch-site": "same-site" }],
    ["no origin at all", { origin: undefined, "sec-fetch-site": undefined }],
  ])("refuses a change that comes by %s", async (_, change) => {
    const { cookie, "viv-key": key } = await login(api, send);
    api.engine.calls.length = 0;
    expect((await send("POST /prune", { ...json, cookie, "viv-key": key, ...change }, "{}")).status).toBe(403);
    expect(api.engine.calls).toEqual([]);
    expect((await send("POST /prune", { ...json, cookie, "viv-key": key }, "{}")).status).toBe(200);
  });

  it("does not take headers of a proxy for what they say: there is none", async () => {
    const { cookie, "viv-key": key } = await login(api, send);
    const forged = { "x-forwarded-proto": "http", "x-forwarded-host": "evil.example", "x-forwarded-for": "127.0.0.1" };
    expect((await send("GET /sandboxes", { cookie, "viv-key": key, ...forged })).status).toBe(200);
  });

  it("carries the screen and terminals over TLS, too", async () => {
    const { cookie, "viv-key": key } = await login(api, send);
    const outcome = (origin: string): Promise<string> =>
      new Promise((resolve) => {
        const options = { origin, headers: { cookie, host: authority }, ca, servername: host };
        const socket = new WebSocket(`wss://127.0.0.1:${api.port}/sandboxes/one/exec`, ["viv", `viv.key.${key}`], options);
        socket.once("open", () => (resolve("open"), socket.terminate()));
        socket.once("unexpected-response", (__, answer) => (resolve(String(answer.statusCode)), socket.terminate()));
        socket.once("error", (error) => resolve(error.message));
      });
    expect(await outcome(own)).toBe("open");
    expect(await outcome("https://evil.example")).toBe("403");
  });

  it("opens to programs with the token alone", async () => {
    const bare = { origin: undefined, "sec-fetch-site": undefined };
    expect((await send("GET /sandboxes", bare)).status).toBe(401);
    expect((await send("GET /sandboxes", { ...bare, authorization: `Bearer ${TOKEN}` })).status).toBe(200);
  });

  it("speaks no TLS of before 1.2", async () => {
    const outcome = (version: "TLSv1.1" | "TLSv1.2"): Promise<string> =>
      new Promise((resolve) => {
        const ciphers = version === "TLSv1.1" ? { ciphers: "DEFAULT@SECLEVEL=0" } : {};
        const options = { host: "127.0.0.1", port: api.port, ca, servername: host, minVersion: version, maxVersion: version, ...ciphers };
        const socket = connect(options, () => (resolve(socket.getProtocol() ?? ""), socket.destroy()));
        socket.once("error", () => resolve("refused"));
      });
    expect(await outcome("TLSv1.1")).toBe("refused");
    expect(await outcome("TLSv1.2")).toBe("TLSv1.2");
  });

  it("binds its name to TLS only where it has the usual port: other programs of that host may speak plain HTTP", async () => {
    expect((await send("GET /")).head).not.toContain("strict-transport-security");
    const { file } = certificate(folder, "named.example");
    const port = await freePort();
    const words = { address: `127.0.0.1:${port}`, cert: file, key: join(folder, "named.example.key"), url: "https://named.example" };
    const other = await startApi({ door: await doorWith(words) });
    const socket = connect({ host: "127.0.0.1", port: other.port, ca: readFileSync(file), servername: "named.example" });
    const answer = await rawRequest(socket, request("GET /", { host: "named.example" }));
    expect(answer.status).toBe(200);
    expect(answer.head).toContain("strict-transport-security: max-age=31536000");
    await other.close();
  });
});

describe("a server that makes its certificate", () => {
  it("keeps it and its fingerprint, and makes another where it is to have other names", async () => {
    const port = await freePort();
    const first = await doorWith({ address: `127.0.0.1:${port}`, selfSigned: true });
    const again = await doorWith({ address: `127.0.0.1:${port}`, selfSigned: true });
    const other = await doorWith({ address: `127.0.0.2:${port}`, selfSigned: true });
    const prints = [first, again, other].map((door) => accessOf(door, port).fingerprint);
    expect(prints[0]).toMatch(/^(?:[\dA-F]{2}:){31}[\dA-F]{2}$/);
    expect(prints[1]).toBe(prints[0]);
    expect(prints[2]).not.toBe(prints[0]);
    expect(statSync(join(folder, "tls-key")).mode & 0o777).toBe(0o600);
  });

  it("is reached by a caller that knows the certificate, by each of its names, and by no other", async () => {
    const port = await freePort();
    const door = await doorWith({ address: `0.0.0.0:${port}`, selfSigned: true });
    const api = await startApi({ door });
    const ca = door.tls?.cert ?? "";
    const { origins, from, tls } = accessOf(door, port);
    expect([from, tls]).toEqual(["every network", "self-signed"]);
    expect(origins).toContain(`https://localhost:${port}`);
    for (const origin of origins) {
      const { host, hostname } = new URL(origin);
      const read = new X509Certificate(ca);
      expect(read.checkHost(hostname) ?? read.checkIP(hostname)).toBeDefined();
      const socket = connect({ host: "127.0.0.1", port, ca, servername: "localhost" });
      expect((await rawRequest(socket, request("GET /", { host }))).status).toBe(200);
    }
    const socket = connect({ host: "127.0.0.1", port, ca, servername: "localhost" });
    expect((await rawRequest(socket, request("GET /", { host: `evil.example:${port}` }))).status).toBe(403);
    await api.close();
  });
});

describe("a server behind a proxy that does TLS (AP-30)", () => {
  let api: ApiServer;
  const own = "https://viv.example.com";

  beforeAll(async () => {
    api = await startApi({ door: await doorWith({ address: `127.0.0.1:${await freePort()}`, behindProxy: own }) });
  });
  afterAll(() => api.close());

  /** As a proxy passes on what a browser sent, with the name that the browser asked for. */
  const send: Send = (line, changes = {}, body = "") => {
    const headers = present({
      host: "viv.example.com",
      origin: own,
      "x-forwarded-proto": "https",
      "sec-fetch-site": "same-origin",
      ...changes,
    });
    return rawRequest({ host: "127.0.0.1", port: api.port }, request(line, headers, body));
  };

  it("is told by its public address, with cookies and names for TLS alone", async () => {
    const { head } = await login(api, send);
    expect(head).toMatch(/set-cookie: __host-viv-session-\d+=.*; secure/i);
    expect(head).toContain("strict-transport-security");
    expect(api.listening.opened).toMatchObject({ origin: own, access: { tls: "proxy", from: "this machine" } });
  });

  it("takes what a proxy says that calls it by its own address", async () => {
    const { cookie, "viv-key": key } = await login(api, send);
    const told = { cookie, "viv-key": key, host: `127.0.0.1:${api.port}`, "x-forwarded-host": "viv.example.com" };
    expect((await send("GET /sandboxes", told)).status).toBe(200);
  });

  it.each([
    ["a name that was bound to the proxy", { host: "evil.example" }],
    ["such a name, with the right one forged beside it", { host: "evil.example", "x-forwarded-host": "viv.example.com" }],
    ["the right name, with another one told", { "x-forwarded-host": "evil.example" }],
    ["two names told", { host: "127.0.0.1:1", "x-forwarded-host": "viv.example.com, evil.example" }],
    ["its own address, without a proxy", { host: "127.0.0.1" }],
    ["plain HTTP to the proxy, with a stolen cookie", { "x-forwarded-proto": "http" }],
    ["a page of another site", { origin: "https://evil.example", "sec-fetch-site": "cross-site" }],
    ["a page of plain HTTP", { origin: "http://viv.example.com" }],
  ])("refuses a change that comes by %s", async (_, change) => {
    const { cookie, "viv-key": key } = await login(api, send);
    api.engine.calls.length = 0;
    expect((await send("POST /prune", { ...json, cookie, "viv-key": key, ...change }, "{}")).status).toBe(403);
    expect(api.engine.calls).toEqual([]);
    expect((await send("POST /prune", { ...json, cookie, "viv-key": key }, "{}")).status).toBe(200);
  });
});
