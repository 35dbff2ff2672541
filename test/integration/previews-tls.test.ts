/** Previews of a server with TLS: names of their own below one that was given, and nothing shared with the dashboard. Each attack has a control. */
import { mkdtempSync, rmSync } from "node:fs";
import { createServer as createHttpServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "node:tls";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { listenChoice, type ListenWords } from "../../src/base/config/listen-choice.ts";
import { newId } from "../../src/base/schema/ids.ts";
import { doorOf, type Door } from "../../src/interfaces/api/door.ts";
import { startApi, type ApiServer } from "../support/api-server.ts";
import { certificate } from "../support/certificates.ts";
import { rawRequest, request, type RawAnswer } from "../support/raw-http.ts";
import { freePort } from "../support/server.ts";

const [BOX, OTHER] = [newId("sandbox"), newId("sandbox")];
const NAME = "pre.example.com";
const DASHBOARD = "viv.example.com";
const folder = mkdtempSync(join(tmpdir(), "viv-previews-"));
let inside: Server;
let seen: IncomingMessage | undefined;

type Headers = Readonly<Record<string, string | undefined>>;
const present = (headers: Headers): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).filter((entry): entry is [string, string] => entry[1] !== undefined));

async function doorWith(words: ListenWords): Promise<Door> {
  const choice = listenChoice(words);
  if (choice === undefined) throw new Error("nothing says where to listen");
  return doorOf(choice, folder);
}

beforeAll(async () => {
  inside = createHttpServer((incoming, outgoing) => {
    seen = incoming;
    const own = `http://${incoming.headers.host ?? ""}`;
    if (incoming.url === "/away") return void outgoing.writeHead(302, { location: `${own}/there` }).end();
    outgoing.setHeader("set-cookie", [
      "plain=1; Domain=example.com",
      "__Host-viv-preview=mine; Path=/; Secure",
      "__Secure-viv-x=mine; Secure",
    ]);
    outgoing.end("from inside");
  });
  new WebSocketServer({ server: inside }).on("connection", (_, incoming) => {
    seen = incoming;
  });
  await new Promise<void>((resolve) => inside.listen(0, "127.0.0.1", resolve));
});

afterAll(() => {
  inside.closeAllConnections();
  inside.close();
  rmSync(folder, { recursive: true });
});

beforeEach(() => {
  seen = undefined;
});

/** The cookie that an answer sets: heads are read in small letters, and names of cookies are not. */
function cookieOf({ head }: RawAnswer): string {
  return (/set-cookie: ([^;\r]+)/.exec(head)?.[1] ?? "").replace(/^__host-/, "__Host-");
}

/** Uses a ticket up; the cookie that the browser gets. */
async function enter(api: ApiServer, send: (line: string, changes: Headers, body?: string) => Promise<RawAnswer>): Promise<string> {
  const { secret } = api.previews.ticket({ place: { sandbox: BOX, door: "3000" }, path: "/", frame: false }, undefined);
  const answer = await send("POST /.viv/enter", { "content-type": "application/json" }, JSON.stringify({ ticket: secret }));
  expect(answer.status).toBe(200);
  return cookieOf(answer);
}

describe("previews of a server with a certificate (BOX-6)", () => {
  let api: ApiServer;
  let ca: Buffer;
  let suffix: string;
  const hostOf = (sandbox = BOX): string => `3000-${sandbox}.${suffix}`;

  beforeAll(async () => {
    const { file, cert } = certificate(folder, DASHBOARD, `*.${NAME}`);
    ca = cert;
    const port = await freePort();
    const words = { address: `127.0.0.1:${port}`, cert: file, key: join(folder, `${DASHBOARD}.key`), previews: `https://*.${NAME}` };
    api = await startApi({ door: await doorWith(words) });
    suffix = `${NAME}:${api.port}`;
  });
  beforeEach(() => {
    api.engine.portOutside = (inside.address() as AddressInfo).port;
    api.engine.calls.length = 0;
  });
  afterAll(() => api.close());

  /** As a browser sends it over TLS from a page of the preview, unless changed. */
  const send = (line: string, changes: Headers = {}, body = ""): Promise<RawAnswer> => {
    const host = changes["host"] ?? hostOf();
    const headers = present({ host, origin: `https://${host}`, "sec-fetch-site": "same-origin", ...changes });
    return rawRequest(
      connect({ host: "127.0.0.1", port: api.port, ca, servername: host.split(":")[0] ?? "" }),
      request(line, headers, body),
    );
  };

  async function login(): Promise<{ cookie: string; "viv-key": string }> {
    const { secret } = await api.sessions.link(api.port, false);
    const host = `${DASHBOARD}:${api.port}`;
    const answer = await send("POST /dashboard/login", { host, "content-type": "application/json" }, JSON.stringify({ link: secret }));
    const { key } = JSON.parse(answer.body) as { key: string };
    return { cookie: cookieOf(answer), "viv-key": key };
  }

  it("let a browser in with a cookie that is of that name alone and goes nowhere without TLS", async () => {
    const { secret } = api.previews.ticket({ place: { sandbox: BOX, door: "3000" }, path: "/", frame: false }, undefined);
    const answer = await send("POST /.viv/enter", { "content-type": "application/json" }, JSON.stringify({ ticket: secret }));
    expect(answer.head).toMatch(/set-cookie: __host-viv-preview=[\da-f]{64}; httponly; secure; samesite=lax; path=\/\r/);
    const cookie = cookieOf(answer);
    expect(await send("GET /", { cookie })).toMatchObject({ status: 200, body: expect.stringContaining("from inside") as string });
    expect((await send("GET /")).status).toBe(401);
  });

  it("tell the program a name below localhost as Host and Origin, and lead its redirections back", async () => {
    const cookie = await enter(api, send);
    await send("POST /x", {
      cookie: `${cookie}; app=1`,
      referer: `https://${hostOf()}/page`,
      "x-forwarded-host": "x",
      "content-length": "0",
    });
    const local = `3000-${BOX}.localhost`;
    expect(seen?.headers).toMatchObject({ host: local, origin: `http://${local}`, referer: `http://${local}/page`, cookie: "app=1" });
    expect(seen?.headers["x-forwarded-host"]).toBeUndefined();
    expect((await send("GET /away", { cookie })).head).toContain(`location: https://${hostOf()}/there`);
  });

  it("take no cookie that a page of another name could have set", async () => {
    const cookie = await enter(api, send);
    const [, value] = cookie.split("=");
    expect((await send("GET /", { cookie: `viv-preview=${value}` })).status).toBe(401);
    expect((await send("GET /", { cookie })).status).toBe(200);
  });

  it("let no program inside set cookies of the server's, or for names above", async () => {
    const { head } = await send("GET /", { cookie: await enter(api, send) });
    expect([...head.matchAll(/set-cookie: ([^\r]*)/gi)].map(([, line]) => line)).toEqual(["plain=1"]);
  });

  it("show the program neither the dashboard's cookie nor its key, and answer nothing of the API", async () => {
    const session = await login();
    const cookie = await enter(api, send);
    const answer = await send("GET /sandboxes", { cookie: `${session.cookie}; ${cookie}`, "viv-key": session["viv-key"] });
    expect(answer.body).toContain("from inside");
    expect([seen?.headers.cookie, seen?.headers["viv-key"]]).toEqual([undefined, undefined]);
    expect(api.engine.calls).not.toContain("listSandboxes");
    const own = { ...session, host: `${DASHBOARD}:${api.port}` };
    expect((await send("GET /sandboxes", own)).status).toBe(200);
  });

  it("are refused by the dashboard, though they are of the same site", async () => {
    const own = { ...(await login()), host: `${DASHBOARD}:${api.port}` };
    for (const changes of [{ origin: `https://${hostOf()}` }, { origin: undefined, "sec-fetch-site": "same-site" }])
      expect((await send("GET /sandboxes", { ...own, ...changes })).status).toBe(403);
    expect((await send("GET /sandboxes", own)).status).toBe(200);
  });

  it("are refused by each other", async () => {
    const cookie = await enter(api, send);
    for (const changes of [
      { origin: `https://${hostOf(OTHER)}`, "sec-fetch-site": "same-site" },
      { origin: undefined, "sec-fetch-site": "same-site" },
    ])
      expect((await send("GET /", { cookie, ...changes })).status).toBe(403);
    expect((await send("GET /", { cookie, host: hostOf(OTHER) })).status).toBe(401);
    expect((await send("GET /", { cookie })).status).toBe(200);
  });

  it("switch to a WebSocket for their own pages alone", async () => {
    const cookie = await enter(api, send);
    const statusFor = (origin: string): Promise<number> =>
      new Promise((resolve) => {
        const options = { ca, servername: hostOf().split(":")[0] ?? "", origin, headers: { host: hostOf(), cookie } };
        const socket = new WebSocket(`wss://127.0.0.1:${api.port}/`, options);
        socket.on("error", () => undefined);
        socket.once("unexpected-response", (_, { statusCode = 0 }) => {
          resolve(statusCode);
          socket.terminate();
        });
        socket.once("open", () => {
          resolve(101);
          socket.close();
        });
      });
    expect(await statusFor(`https://${hostOf(OTHER)}`)).toBe(403);
    expect(await statusFor(`https://${hostOf()}`)).toBe(101);
    expect(seen?.headers.origin).toBe(`http://3000-${BOX}.localhost`);
  });

  it("are framed by the dashboard alone, which frames nothing else", async () => {
    const dashboard = `https://${DASHBOARD}:${api.port}`;
    const { head } = await send("GET /", { host: `${DASHBOARD}:${api.port}`, origin: undefined, "sec-fetch-site": "none" });
    expect(head).toContain(`frame-src https://*.${suffix}\r`);
    expect((await send("GET /", { cookie: await enter(api, send) })).head).toContain(`frame-ancestors 'self' ${dashboard}\r`);
  });
});

describe("previews behind a proxy that does TLS (BOX-6)", () => {
  let api: ApiServer;
  const host = `3000-${BOX}.${NAME}`;

  beforeAll(async () => {
    const words = { address: `127.0.0.1:${await freePort()}`, behindProxy: `https://${DASHBOARD}`, previews: `https://*.${NAME}` };
    api = await startApi({ door: await doorWith(words) });
  });
  beforeEach(() => {
    api.engine.portOutside = (inside.address() as AddressInfo).port;
  });
  afterAll(() => api.close());

  const send = (line: string, changes: Headers = {}, body = ""): Promise<RawAnswer> => {
    const proxy = { host: `127.0.0.1:${api.port}`, "x-forwarded-host": host, "x-forwarded-proto": "https" };
    const headers = present({ ...proxy, origin: `https://${host}`, "sec-fetch-site": "same-origin", ...changes });
    return rawRequest({ host: "127.0.0.1", port: api.port }, request(line, headers, body));
  };

  it("are found by the name that the browser asked the proxy for", async () => {
    const cookie = await enter(api, send);
    expect(cookie).toMatch(/^__Host-viv-preview=/);
    expect((await send("GET /", { cookie })).status).toBe(200);
    expect((await send("GET /", { cookie, host, "x-forwarded-host": undefined })).status).toBe(200);
    expect(seen?.headers).toMatchObject({ host: `3000-${BOX}.localhost` });
    expect(seen?.headers["x-forwarded-proto"]).toBeUndefined();
  });

  it("are not shown to a browser that came without TLS, or by a name that the proxy does not know", async () => {
    const cookie = await enter(api, send);
    expect((await send("GET /", { cookie, "x-forwarded-proto": "http" })).status).toBe(403);
    expect((await send("GET /", { cookie, host: "evil.example" })).status).toBe(403);
    expect((await send("GET /", { cookie })).status).toBe(200);
  });
});

describe("where previews are to be (BOX-6)", () => {
  it("is refused at the start, unless the certificate is good for it", async () => {
    const { file } = certificate(folder, "alone.example.com");
    const words = { address: "127.0.0.1:7419", cert: file, key: join(folder, "alone.example.com.key") };
    await expect(doorWith({ ...words, previews: `https://*.${NAME}` })).rejects.toMatchObject({ code: "config_invalid" });
    expect((await doorWith(words)).previews(7419)).toBeUndefined();
    const own = await doorWith({ address: "127.0.0.1:7419", selfSigned: true, previews: `https://*.${NAME}` });
    expect(own.previews(7419)).toEqual({ scheme: "https", host: `${NAME}:7419` });
  });

  it.each([
    ["without TLS", { address: "7419", previews: `https://*.${NAME}` }],
    ["without a name", { address: "7419", selfSigned: true, previews: "https://*.192.0.2.1" }],
    ["by plain HTTP", { address: "7419", selfSigned: true, previews: `http://*.${NAME}` }],
    ["at one name for all", { address: "7419", selfSigned: true, previews: `https://${NAME}` }],
  ])("is no place %s", (_, words) => {
    expect(() => listenChoice(words)).toThrow(expect.objectContaining({ code: "usage" }) as Error);
    expect(listenChoice({ address: "7419", selfSigned: true, previews: `https://*.${NAME}` })?.previews?.name).toBe(NAME);
  });

  it("is not where the dashboard is", async () => {
    const words = { address: "127.0.0.1:7419", behindProxy: `https://3000-dash.${NAME}` };
    await expect(doorWith({ ...words, previews: `https://*.${NAME}` })).rejects.toMatchObject({ code: "config_invalid" });
    expect((await doorWith({ ...words, previews: "https://*.other.example" })).previews(1)).toEqual({
      scheme: "https",
      host: "other.example",
    });
  });
});
