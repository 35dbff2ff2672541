/** Ports at origins of their own: who gets in, what a program inside sees, and what it can do to a browser. Each attack has a control. */
import { once } from "node:events";
import { createServer as createHttpServer, type IncomingMessage, type Server as HttpServer } from "node:http";
import { connect, createServer, type AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { VivError } from "../../src/base/schema/errors.ts";
import { newId } from "../../src/base/schema/ids.ts";
import { LIMITS } from "../../src/base/schema/limits.ts";
import { Previews } from "../../src/rules/sessions/previews.ts";
import { startApi, TOKEN, type ApiServer } from "../support/api-server.ts";
import { rawRequest, request, type RawAnswer } from "../support/raw-http.ts";

const [BOX, OTHER] = [newId("sandbox"), newId("sandbox")];
let api: ApiServer;
let inside: HttpServer;
let seen: IncomingMessage | undefined;
let seenBody: string;

beforeAll(async () => {
  api = await startApi();
  inside = createHttpServer((incoming, outgoing) => {
    seen = incoming;
    if (incoming.url === "/never") return;
    if (incoming.url === "/slow") return outgoing.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
    if (incoming.url === "/away") return void outgoing.writeHead(302, { location: "http://localhost:3000/there?a=b" }).end();
    if (incoming.url === "/greedy") {
      outgoing.writeHead(200, {
        "set-cookie": [
          "plain=1; Path=/; HttpOnly",
          "wide=1; Domain=localhost; SameSite=None; Secure",
          "viv-preview=mine",
          "viv-session-7411=mine",
          "Viv-Frame=mine; Domain=localhost",
        ],
        "clear-site-data": '"cookies"',
        "strict-transport-security": "max-age=1",
        "x-frame-options": "DENY",
        "content-security-policy": "default-src 'self'; Frame-Ancestors *, img-src *",
        "service-worker-allowed": "/",
        "x-own": "1",
      });
      return void outgoing.end("greedy");
    }
    seenBody = "";
    incoming.on("data", (chunk: Buffer) => (seenBody += chunk.toString()));
    incoming.on("end", () => outgoing.end(`asked for ${incoming.method} ${incoming.url}`));
  });
  const sockets = new WebSocketServer({ server: inside });
  sockets.on("connection", (socket, incoming) => {
    seen = incoming;
    socket.on("message", (data, binary) => socket.send(data, { binary }));
  });
  await new Promise<void>((resolve) => inside.listen(0, "127.0.0.1", resolve));
});

beforeEach(() => {
  api.clock.aheadMs = 0;
  api.engine.calls.length = 0;
  api.engine.portOutside = (inside.address() as AddressInfo).port;
  seen = undefined;
});

afterAll(async () => {
  inside.closeAllConnections();
  inside.close();
  await api.close();
});

type Headers = Readonly<Record<string, string | undefined>>;

const hostOf = (sandbox = BOX, door = "3000"): string => `${door}-${sandbox}.localhost:${api.port}`;
const originOf = (sandbox = BOX, door = "3000"): string => `http://${hostOf(sandbox, door)}`;

/** As a browser sends it from a page of the preview, unless changed. */
function browser(line: string, changes: Headers = {}, body = ""): Promise<RawAnswer> {
  const headers: Headers = { host: hostOf(), "sec-fetch-site": "same-origin", ...changes };
  const present = Object.fromEntries(Object.entries(headers).filter((entry): entry is [string, string] => entry[1] !== undefined));
  return rawRequest({ host: "127.0.0.1", port: api.port }, request(line, present, body));
}

interface Place {
  readonly sandbox?: string;
  readonly door?: string;
  readonly frame?: boolean;
  readonly key?: string;
}

function ticket({ sandbox = BOX, door = "3000", frame = false, key }: Place = {}): string {
  return api.previews.ticket({ place: { sandbox, door }, path: "/start?x=1", frame }, key).secret;
}

function use(secret: string, { sandbox, door }: Place = {}, changes: Headers = {}): Promise<RawAnswer> {
  const headers = { host: hostOf(sandbox, door), origin: originOf(sandbox, door), "content-type": "application/json", ...changes };
  return browser("POST /.viv/enter", headers, JSON.stringify({ ticket: secret }));
}

/** The cookie of a browser that was let in. */
async function enter(place: Place = {}): Promise<string> {
  const answer = await use(ticket(place), place);
  expect(answer.status).toBe(200);
  return /set-cookie: ([^;\r]+)/i.exec(answer.head)?.[1] ?? "";
}

const visit = { "sec-fetch-mode": "navigate", "sec-fetch-dest": "document", accept: "text/html" };

describe("BOX-6: a preview lets in (PV-01)", () => {
  it("a browser with a link, once, which gets a cookie of this origin alone", async () => {
    const secret = ticket();
    const answer = await use(secret);
    expect(answer.head).toMatch(/set-cookie: viv-preview=[\da-f]{64}; httponly; samesite=lax; path=\/\r?$/m);
    expect(JSON.parse(answer.body)).toEqual({ path: "/start?x=1" });
    expect((await use(secret)).status).toBe(401);
    const cookie = /set-cookie: ([^;\r]+)/i.exec(answer.head)?.[1] ?? "";
    expect((await browser("GET /a%20b?c", { cookie })).body).toBe("asked for GET /a%20b?c");
  });

  it("a frame of the dashboard with a cookie that other pages' frames do not have", async () => {
    const answer = await use(ticket({ frame: true }));
    expect(answer.head).toMatch(/set-cookie: viv-frame=[\da-f]{64}; httponly; secure; samesite=none; partitioned; path=\//);
  });

  it("no browser without the cookie, and says what to do instead of asking the program", async () => {
    for (const cookie of [undefined, "viv-preview=", `viv-preview=${"a".repeat(64)}`, `viv-session-${api.port}=x`]) {
      const answer = await browser("GET /", { ...visit, cookie, authorization: `Bearer ${TOKEN}` });
      expect(answer.status).toBe(401);
      expect(answer.body).toContain(`viv port ${BOX} 3000 --open`);
    }
    expect(seen).toBeUndefined();
    expect((await browser("GET /", { ...visit, cookie: await enter() })).status).toBe(200);
  });

  it("no browser with the cookie of another port or another sandbox, or a link of one", async () => {
    const cookie = await enter();
    expect((await browser("GET /", { cookie, host: hostOf(BOX, "3001") })).status).toBe(401);
    expect((await browser("GET /", { cookie, host: hostOf(OTHER) })).status).toBe(401);
    const secret = ticket();
    expect((await use(secret, { sandbox: OTHER })).status).toBe(401);
    expect((await use(secret, { door: "3001" })).status).toBe(401);
    expect(seen).toBeUndefined();
    expect((await use(secret)).status).toBe(200);
    expect((await browser("GET /", { cookie })).status).toBe(200);
  });

  it("no page that sends a link from another origin", async () => {
    const secret = ticket();
    for (const origin of [undefined, "null", `http://127.0.0.1:${api.port}`, originOf(OTHER), "http://evil.example"])
      expect((await use(secret, {}, { origin })).status).toBe(403);
    expect((await use(secret)).status).toBe(200);
  });

  it("no browser whose link is too old, or whose session has ended; one that lives on does so over a new start of the server", async () => {
    const late = ticket();
    api.clock.aheadMs = LIMITS.previewLinkMs + 1;
    expect((await use(late)).status).toBe(401);
    api.clock.aheadMs = 0;
    const { secret, session } = await api.sessions.link(api.port, false);
    const { key } = await api.sessions.login(secret, undefined);
    const [ofSession, alone] = [await enter({ key }), await enter()];
    const again = await Previews.open(api.store, api.sessions);
    const place = { sandbox: BOX, door: "3000" };
    for (const cookie of [ofSession, alone]) expect(again.check([cookie.split("=")[1] ?? ""], place)).toBeDefined();
    expect((await browser("GET /", { cookie: ofSession })).status).toBe(200);
    await api.sessions.end(session.id);
    expect((await browser("GET /", { cookie: ofSession })).status).toBe(401);
    expect((await browser("GET /", { cookie: alone })).status).toBe(200);
    api.clock.aheadMs = LIMITS.previewMs + 1;
    expect((await browser("GET /", { cookie: alone })).status).toBe(401);
    expect(() => api.previews.ticket({ place, path: "/", frame: false }, key)).toThrow(VivError);
  });

  it("no browser any more once the previews of the sandbox are closed, and cuts its connections off", async () => {
    const [cookie, other] = [await enter(), await enter({ sandbox: OTHER })];
    const socket = new WebSocket(`ws://127.0.0.1:${api.port}/`, { origin: originOf(), headers: { host: hostOf(), cookie } });
    await once(socket, "open");
    const closed = once(socket, "close");
    await api.previews.close(BOX);
    await closed;
    expect((await browser("GET /", { cookie })).status).toBe(401);
    expect((await browser("GET /", { cookie: other, host: hostOf(OTHER) })).status).toBe(200);
  });
});

describe("a program behind a preview (PV-02, PV-03)", () => {
  it("sees Host, Origin and its own cookies, and none of the server's cookies, keys and tokens", async () => {
    const cookie = await enter();
    const headers = { cookie: `a=b; ${cookie}; viv-session-${api.port}=s; viv-frame=f; c`, "viv-key": "k", origin: originOf() };
    await browser("POST /form", { ...headers, authorization: `Bearer ${TOKEN}`, connection: "close, x-hop", "x-hop": "1" }, "body");
    expect(seenBody).toBe("body");
    expect(seen?.headers).toMatchObject({ cookie: "a=b; c", host: hostOf(), origin: originOf() });
    for (const name of ["viv-key", "authorization", "x-hop"]) expect(seen?.headers[name]).toBeUndefined();
    await browser("GET /", { cookie, authorization: "Bearer of-the-app" });
    expect(seen?.headers).toMatchObject({ authorization: "Bearer of-the-app" });
    expect(seen?.headers.cookie).toBeUndefined();
  });

  it("sets no cookie for the names above it and none of the server's, and gets no say over who frames it", async () => {
    const { head } = await browser("GET /greedy", { cookie: await enter() });
    const cookies = head.split("\r\n").filter((line) => line.startsWith("set-cookie"));
    expect(cookies).toEqual(["set-cookie: plain=1; path=/; httponly", "set-cookie: wide=1; samesite=none; secure"]);
    for (const name of ["clear-site-data", "strict-transport-security", "x-frame-options"]) expect(head).not.toContain(name);
    expect(head).toContain("x-own: 1");
    expect(head).toContain("service-worker-allowed: /");
    const own = `frame-ancestors 'self' http://127.0.0.1:${api.port} http://localhost:${api.port}`;
    expect(head).toContain(`content-security-policy: default-src 'self', img-src *, ${own}\r\n`);
  });

  it("has cookies in a frame of the dashboard, too, which belong to that frame", async () => {
    const { head } = await browser("GET /greedy", { cookie: await enter({ frame: true }) });
    expect(head).toContain("set-cookie: plain=1; path=/; httponly; samesite=none; secure; partitioned");
  });

  it("that redirects to its address inside leads back to the preview", async () => {
    expect((await browser("GET /away", { cookie: await enter() })).head).toContain(`location: ${originOf()}/there?a=b`);
  });

  it("streams both ways, and speaks WebSocket with its own page alone", async () => {
    const cookie = await enter();
    const outcome = (origin: string | undefined, sent = cookie, host = hostOf()): Promise<string> =>
      new Promise((resolve) => {
        const options = { ...(origin === undefined ? {} : { origin }), headers: { host, cookie: sent } };
        const socket = new WebSocket(`ws://127.0.0.1:${api.port}/hot`, ["viv", "viv.key.k", "vite-hmr"], options);
        socket.once("open", () => socket.send("ping"));
        socket.once("message", (data: Buffer) => (resolve(`${socket.protocol} ${data.toString()}`), socket.terminate()));
        socket.once("unexpected-response", (_, answer) => (resolve(String(answer.statusCode)), socket.terminate()));
        socket.once("error", () => resolve("error"));
      });
    expect(await outcome(originOf())).toBe("vite-hmr ping");
    expect(seen?.headers).toMatchObject({ "sec-websocket-protocol": "vite-hmr", host: hostOf() });
    expect(seen?.headers.cookie).toBeUndefined();
    seen = undefined;
    for (const origin of [undefined, "null", `http://127.0.0.1:${api.port}`, originOf(OTHER), originOf(BOX, "3001"), "http://evil.example"])
      expect(await outcome(origin)).toBe("403");
    expect(await outcome(originOf(), "viv-preview=x")).toBe("401");
    expect(seen).toBeUndefined();
  });

  it("is not reached by pages of other origins, but for a link that a person follows", async () => {
    const cookie = await enter();
    for (const site of ["cross-site", "same-site"]) {
      const from = { cookie, "sec-fetch-site": site };
      expect((await browser("GET /", { ...from, "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image" })).status).toBe(403);
      expect(
        (await browser("GET /", { ...from, "sec-fetch-mode": "cors", "sec-fetch-dest": "empty", origin: originOf(OTHER) })).status,
      ).toBe(403);
      expect((await browser("GET /", { ...from, ...visit, "sec-fetch-dest": "iframe" })).status).toBe(403);
      expect((await browser("POST /", { ...from, ...visit, origin: originOf(OTHER) }, "x")).status).toBe(403);
    }
    expect((await browser("POST /", { cookie, "sec-fetch-site": undefined, origin: undefined }, "x")).status).toBe(403);
    expect((await browser("GET /", { cookie, "sec-fetch-site": undefined, origin: originOf(OTHER) })).status).toBe(403);
    expect(seen).toBeUndefined();
    expect((await browser("GET /", { cookie, ...visit, "sec-fetch-site": "cross-site" })).status).toBe(200);
    expect((await browser("POST /", { cookie, ...visit, origin: originOf() }, "x")).status).toBe(200);
  });

  it("reaches neither the API nor the pages of the dashboard at its own origin", async () => {
    const cookie = await enter();
    for (const path of ["/sandboxes", "/dashboard/login", "/", `/sandboxes/${BOX}/ports/3000/http/`]) {
      const answer = await browser(`GET ${path}`, { cookie, authorization: `Bearer ${TOKEN}` });
      expect(answer.body).toBe(`asked for GET ${path}`);
    }
    expect(api.engine.calls).toEqual([]);
    const own = { host: `127.0.0.1:${api.port}`, authorization: `Bearer ${TOKEN}` };
    expect((await browser("GET /sandboxes", own)).status).toBe(200);
    for (const origin of [originOf(), "null"]) expect((await browser("GET /sandboxes", { ...own, origin })).status).toBe(403);
    expect((await browser("GET /sandboxes", { ...own, "sec-fetch-site": "cross-site" })).status).toBe(403);
    expect((await browser("GET /work", { ...own, ...visit, "sec-fetch-site": "cross-site", "sec-fetch-dest": "iframe" })).status).toBe(403);
  });
});

describe("addresses and bytes that are not plain (PV-04)", () => {
  it.each([
    "evil.example",
    "3000-SANDBOX.localhost.evil.example:PORT",
    "3000-SANDBOX.localhost",
    "3000-SANDBOX.localhost:1",
    "3000-SANDBOX.localhost.:PORT",
    "03000-SANDBOX.localhost:PORT",
    "65536-SANDBOX.localhost:PORT",
    "0-SANDBOX.localhost:PORT",
    "-1-SANDBOX.localhost:PORT",
    "3000-SANDBOX.x.localhost:PORT",
    "3000-SANDBOX.LOCALHOST:PORT",
    "SANDBOX.localhost:PORT",
    "user@3000-SANDBOX.localhost:PORT",
  ])("as the Host %s name no preview", async (pattern) => {
    const cookie = await enter();
    const host = pattern.replace("SANDBOX", BOX).replace("PORT", String(api.port));
    expect((await browser("GET /", { cookie, host })).status).toBe(403);
    expect(seen).toBeUndefined();
  });

  it("with two Hosts, or a whole address for a path, are refused", async () => {
    const cookie = await enter();
    const send = (head: string): Promise<RawAnswer> =>
      rawRequest({ host: "127.0.0.1", port: api.port }, `${head}\r\ncookie: ${cookie}\r\nconnection: close\r\n\r\n`);
    expect((await send(`GET / HTTP/1.1\r\nhost: ${hostOf()}\r\nhost: 127.0.0.1:${api.port}`)).status).toBe(403);
    expect((await send(`GET http://127.0.0.1:${api.port}/sandboxes HTTP/1.1\r\nhost: ${hostOf()}`)).status).toBe(403);
    expect(seen).toBeUndefined();
    expect((await send(`GET / HTTP/1.1\r\nhost: ${hostOf()}`)).status).toBe(200);
  });

  it("go inside as they are, and never name the server's own place", async () => {
    const cookie = await enter();
    for (const path of ["/../../etc/passwd", "//evil.example/x", "/%2e%2e/%00", "/.viv", "/%2eviv/enter", "/a\\b"]) {
      expect((await browser(`GET ${path}`, { cookie })).body).toBe(`asked for GET ${path}`);
    }
    seen = undefined;
    for (const path of ["/.viv/", "/.viv/other", "/.viv/../x", "/.viv/enter/x"])
      expect((await browser(`GET ${path}`, { cookie })).status).toBe(404);
    expect(seen).toBeUndefined();
  });

  it("carry no second request past the first", async () => {
    const cookie = await enter();
    const paths: (string | undefined)[] = [];
    const note = (incoming: IncomingMessage): void => void paths.push(incoming.url);
    inside.on("request", note);
    const hidden = `GET /hidden HTTP/1.1\r\nhost: x\r\n\r\n`;
    const head = `host: ${hostOf()}\r\ncookie: ${cookie}\r\nconnection: close\r\n`;
    const send = (text: string): Promise<RawAnswer> => rawRequest({ host: "127.0.0.1", port: api.port }, text);
    const chunked = `${hidden.length.toString(16)}\r\n${hidden}\r\n0\r\n\r\n`;
    expect((await send(`GET /first HTTP/1.1\r\n${head}transfer-encoding: chunked\r\n\r\n${chunked}`)).status).toBe(200);
    expect(seenBody).toBe(hidden);
    expect((await send(`POST /both HTTP/1.1\r\n${head}content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n${chunked}`)).status).toBe(
      400,
    );
    expect((await send(`POST /twice HTTP/1.1\r\n${head}content-length: 4\r\ncontent-length: 9\r\n\r\n${hidden}`)).status).toBe(400);
    expect((await send(`GET /bare HTTP/1.1\r\n${head}x: a\nb: c\r\n\r\n`)).status).toBe(400);
    inside.off("request", note);
    expect(paths).toEqual(["/first"]);
  });

  it("of headers that are too large are refused, from outside and from inside", async () => {
    const cookie = await enter();
    expect((await browser("GET /", { cookie, "x-large": "y".repeat(200_000) })).status).toBe(431);
    const hostile = createServer((socket) => {
      socket.on("error", () => socket.destroy());
      socket.once("data", () => socket.end(`HTTP/1.1 200 OK\r\nx: ${"y".repeat(LIMITS.previewHeadBytes)}\r\n\r\n`));
    });
    await new Promise<void>((resolve) => hostile.listen(0, "127.0.0.1", resolve));
    api.engine.portOutside = (hostile.address() as AddressInfo).port;
    const answer = await browser("GET /", { cookie, ...visit });
    hostile.close();
    expect(answer.status).toBe(502);
    expect(answer.body).toContain("<h1>");
  });
});

describe("a preview that can't be shown", () => {
  let refusal: VivError | undefined;

  beforeAll(() => {
    const { streams } = api.engine;
    const dial = streams.dial.bind(streams);
    streams.dial = async (sandbox, port) => {
      if (refusal !== undefined) throw refusal;
      return dial(sandbox, port);
    };
  });

  afterEach(() => (refusal = undefined));

  it("says that nothing listens yet, and looks again by itself", async () => {
    refusal = new VivError("port_unreachable", "Nothing listens.");
    const answer = await browser("GET /", { cookie: await enter(), ...visit });
    expect(answer.status).toBe(502);
    expect(answer.body).toContain("Nothing listens on port 3000 in this sandbox yet.");
    expect(answer.body).toContain("This page looks again every 2 seconds.");
    expect(answer.head).toMatch(/^viv-trouble: 1\r?$/im);
    const script = await browser("GET /data", { cookie: await enter(), "sec-fetch-mode": "cors" });
    expect(JSON.parse(script.body)).toMatchObject({ error: { code: "port_unreachable" } });
  });

  it("says that the sandbox was stopped or removed, and shows its words as text", async () => {
    refusal = new VivError("not_running", "Sandbox <img src=x> has ended.", { remedy: "Run `viv start <b>`." });
    const stopped = await browser("GET /", { cookie: await enter(), ...visit });
    expect(stopped.status).toBe(409);
    expect(stopped.body).toContain("Sandbox &lt;img src=x&gt; has ended.");
    expect(stopped.body).toContain("<code>viv start &lt;b&gt;</code>");
    expect(stopped.head).toMatch(/content-security-policy: default-src 'none'.*frame-ancestors 'self' http:\/\/127/);
    refusal = new VivError("not_found", "There is no sandbox.");
    expect((await browser("GET /", { cookie: await enter(), ...visit })).body).toContain("This sandbox was removed.");
  });

  it("does not wait for ever for a program that never answers, and lets one stream that is slow", async () => {
    const cookie = await enter();
    const slow = connect({ host: "127.0.0.1", port: api.port });
    slow.write(request("GET /slow", { host: hostOf(), cookie, "sec-fetch-site": "same-origin" }));
    const [first] = (await once(slow, "data")) as [Buffer];
    expect(first.toString()).toMatch(/^HTTP\/1.1 200/);
    const never = await browser("GET /never", { cookie, ...visit });
    expect(never.status).toBe(504);
    expect(never.body).toContain("did not begin to answer");
    expect(slow.destroyed).toBe(false);
    slow.destroy();
  });
});
