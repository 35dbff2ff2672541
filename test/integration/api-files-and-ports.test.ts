import { once } from "node:events";
import { createServer as createHttpServer, type IncomingMessage, type Server as HttpServer } from "node:http";
import { createServer, type AddressInfo, type Server } from "node:net";
import { Readable } from "node:stream";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { VivError } from "../../src/base/schema/errors.ts";
import { startApi, TOKEN, type ApiServer } from "../support/api-server.ts";
import { all, collect, echoServer } from "../support/scripted-engine.ts";

let api: ApiServer;

beforeEach(async () => {
  api = await startApi();
});

afterEach(() => api.close());

describe("files", () => {
  it("are read, written, packed, unpacked and watched", async () => {
    const { entry, body } = await api.client.readFile("one", "naïve.txt");
    expect(entry.path).toBe("naïve.txt");
    expect((await collect(body)).toString()).toBe("hello");
    const large = Buffer.alloc(3 * 1024 ** 2, "z");
    expect(await api.client.writeFile("one", "a", Readable.from([large]), { mode: 0o755, parents: true })).toMatchObject({
      size: large.length,
    });
    expect(api.engine.written.get("a")?.equals(large)).toBe(true);
    expect((await collect(await api.client.packFiles("one", "."))).toString()).toBe("tar");
    expect(await api.client.unpackFiles("one", "b", Readable.from([large]))).toEqual({ files: 1, bytes: large.length });
    const changes = api.client.watchFiles("one", ".", { recursive: true, signal: AbortSignal.timeout(10_000) });
    expect(await all(changes)).toEqual([
      { change: "created", path: "a" },
      { change: "removed", path: "a" },
    ]);
  });

  it("that are refused half-way say why", async () => {
    api.engine.streams.writeFile = async (_sandbox, _path, body) => {
      for await (const _ of body) throw new VivError("disk_full", "The sandbox's disk is full.");
      throw new Error("no body");
    };
    const endless = async function* (): AsyncGenerator<Buffer> {
      for (let count = 0; count < 2_000; count += 1) yield Buffer.alloc(64 * 1024);
    };
    await expect(api.client.writeFile("one", "a", endless())).rejects.toMatchObject({ code: "disk_full" });
    expect((await api.client.call("listSandboxes", {})).sandboxes).toHaveLength(1);
  });

  it("that break off half-way are not taken for whole", async () => {
    const broken = async function* (): AsyncGenerator<Buffer> {
      for (let count = 0; count < 20; count += 1) yield Buffer.alloc(64 * 1024);
      throw new VivError("cell_failed", "The sandbox went away.");
    };
    api.engine.streams.packFiles = async () => Readable.from(broken());
    const archive = await api.client.packFiles("one", ".");
    await expect(collect(archive)).rejects.toThrow();
  });

  it("without a reader are closed inside (F-47)", async () => {
    const endless = async function* (): AsyncGenerator<Buffer> {
      for (;;) yield Buffer.alloc(64 * 1024);
    };
    const body = Readable.from(endless());
    api.engine.streams.packFiles = async () => body;
    const archive = await api.client.packFiles("one", ".");
    const closed = new Promise((resolve) => body.once("close", resolve));
    archive.once("data", () => archive.destroy());
    await closed;
    expect(body.destroyed).toBe(true);
  });

  it("whose upload breaks off tell the engine so (F-47)", async () => {
    const begun = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<unknown>();
    api.engine.streams.writeFile = async (_sandbox, _path, body) => {
      try {
        for await (const _ of body) begun.resolve();
        ended.resolve("complete");
      } catch (error) {
        ended.resolve(error);
      }
      throw new VivError("cancelled", "The upload broke off.");
    };
    const failing = async function* (): AsyncGenerator<Buffer> {
      yield Buffer.alloc(64 * 1024);
      await begun.promise;
      throw new Error("the disk of the caller failed");
    };
    await expect(api.client.writeFile("one", "a", failing())).rejects.toThrow(/^the disk of the caller failed$/);
    expect(await ended.promise).toBeInstanceOf(Error);
  });

  it("give no authority to what they hold", async () => {
    const answer = await fetch(`http://127.0.0.1:${api.port}/sandboxes/one/files/content?path=x.html`, {
      headers: { authorization: `Bearer ${TOKEN}` },
    });
    expect(answer.headers.get("content-type")).toBe("application/octet-stream");
    expect(answer.headers.get("content-disposition")).toBe("attachment");
    expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
  });
});

describe("a tunnel to a port inside", () => {
  let echo: Server;

  beforeEach(async () => {
    echo = await echoServer();
    api.engine.portOutside = (echo.address() as AddressInfo).port;
  });

  afterEach(() => echo.close());

  it("carries bytes both ways, also after one side has ended", async () => {
    const tunnel = await api.client.dial("one", 5432);
    const sent = Buffer.alloc(5 * 1024 ** 2, "t");
    tunnel.end(sent);
    expect((await collect(tunnel)).equals(sent)).toBe(true);
  });

  it("ends when the side inside breaks off", async () => {
    echo.once("connection", (socket) => socket.destroy());
    const tunnel = await api.client.dial("one", 5432);
    expect(await collect(tunnel).catch(() => Buffer.alloc(0))).toHaveLength(0);
  });

  it("is refused when nothing listens, or the port is not a port", async () => {
    await expect(api.client.dial("one", 9)).rejects.toMatchObject({ code: "port_unreachable" });
    for (const port of [0, 65_536, 1.5, -1]) await expect(api.client.dial("one", port)).rejects.toMatchObject({ code: "invalid_input" });
  });
});

describe("HTTP to a port inside", () => {
  let inside: HttpServer;
  let seen: IncomingMessage | undefined;

  beforeEach(async () => {
    seen = undefined;
    inside = createHttpServer((incoming, outgoing) => {
      seen = incoming;
      if (incoming.url === "/redirect") return void outgoing.writeHead(302, { location: "/there" }).end();
      if (incoming.url === "/broken") return void incoming.socket.destroy();
      outgoing.writeHead(200, {
        "content-type": "text/html",
        "set-cookie": "a=b",
        "access-control-allow-origin": "*",
        "service-worker-allowed": "/",
        "content-security-policy": "default-src *",
        "x-own": "1",
      });
      incoming.pipe(outgoing);
    });
    const sockets = new WebSocketServer({ server: inside });
    sockets.on("connection", (socket) => socket.on("message", (data, binary) => socket.send(data, { binary })));
    await new Promise<void>((resolve) => inside.listen(0, "127.0.0.1", resolve));
    api.engine.portOutside = (inside.address() as AddressInfo).port;
  });

  afterEach(() => {
    inside.close();
    inside.closeAllConnections();
  });

  const through = (path: string, options: { method?: string; body?: string; headers?: Record<string, string> } = {}): Promise<Response> =>
    fetch(`http://127.0.0.1:${api.port}/sandboxes/one/ports/3000/http${path}`, {
      redirect: "manual",
      ...options,
      headers: { authorization: `Bearer ${TOKEN}`, cookie: "session=1", ...options.headers },
    });

  it("passes method, path, query and body, and neither token nor cookies", async () => {
    const answer = await through("/a%20b?c=d&e", {
      method: "PATCH",
      body: "x".repeat(1024 ** 2),
      headers: { "x-mine": "yes", te: "trailers" },
    });
    expect(answer.status).toBe(200);
    expect((await answer.text()).length).toBe(1024 ** 2);
    expect(seen).toMatchObject({ method: "PATCH", url: "/a%20b?c=d&e" });
    expect(seen?.headers).toMatchObject({ host: "localhost:3000", "x-mine": "yes" });
    for (const name of ["authorization", "cookie", "te"]) expect(seen?.headers[name]).toBeUndefined();
  });

  it("gives pages from inside no authority over the API's origin", async () => {
    const { headers } = await through("/");
    expect(headers.get("content-security-policy")).toBe("sandbox allow-scripts allow-forms");
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    expect(headers.get("x-own")).toBe("1");
    for (const name of ["set-cookie", "access-control-allow-origin", "service-worker-allowed"]) expect(headers.get(name)).toBeNull();
  });

  it("keeps redirects inside", async () => {
    expect((await through("/redirect")).headers.get("location")).toBe("/sandboxes/one/ports/3000/http/there");
  });

  it("needs the token", async () => {
    expect((await through("/", { headers: { authorization: "" } })).status).toBe(401);
    expect(seen).toBeUndefined();
  });

  it("says when nothing answers", async () => {
    expect((await through("/broken")).status).toBe(502);
    const none = await fetch(`http://127.0.0.1:${api.port}/sandboxes/one/ports/9/http/`, { headers: { authorization: `Bearer ${TOKEN}` } });
    expect(none.status).toBe(502);
  });

  it("passes WebSockets through, and their tokens not", async () => {
    const socket = new WebSocket(`ws://127.0.0.1:${api.port}/sandboxes/one/ports/3000/http/socket`, ["viv", `viv.bearer.${TOKEN}`, "chat"]);
    inside.once("upgrade", (incoming) => {
      seen = incoming;
    });
    await once(socket, "open");
    expect(socket.protocol).toBe("chat");
    expect(seen?.headers["sec-websocket-protocol"]).toBe("chat");
    socket.send("ping");
    const [data] = (await once(socket, "message")) as [Buffer];
    expect(data.toString()).toBe("ping");
    socket.terminate();
  });
});

describe("a hostile server inside", () => {
  const answers = {
    "an impossible status": "HTTP/1.1 099 No\r\n\r\n",
    "a huge status": "HTTP/1.1 999 No\r\ncontent-length: 0\r\n\r\n",
    "a switch that was not asked for": "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: evil\r\n\r\n",
    "bytes that are not HTTP": "SSH-2.0-OpenSSH_9.2\r\n",
    "headers without end": `HTTP/1.1 200 OK\r\nx: ${"y".repeat(200_000)}\r\n\r\n`,
    "a header that splits": "HTTP/1.1 200 OK\r\nx: a\rb\r\n\r\n",
    nothing: "",
  };

  it.each(Object.entries(answers))("that answers with %s costs its caller a 502 and the server nothing", async (_, bytes) => {
    const hostile = createServer((socket) => {
      socket.on("error", () => socket.destroy());
      socket.once("data", () => socket.end(bytes, "latin1"));
    });
    await new Promise<void>((resolve) => hostile.listen(0, "127.0.0.1", resolve));
    api.engine.portOutside = (hostile.address() as AddressInfo).port;
    const url = `http://127.0.0.1:${api.port}/sandboxes/one/ports/80/http/`;
    const answer = await fetch(url, { headers: { authorization: `Bearer ${TOKEN}` } });
    expect(answer.status).toBe(502);
    const socket = new WebSocket(url.replace("http", "ws"), { headers: { authorization: `Bearer ${TOKEN}` } });
    socket.on("error", () => undefined);
    await new Promise((resolve) => socket.once("close", resolve));
    expect((await api.client.call("listSandboxes", {})).sandboxes).toHaveLength(1);
    hostile.close();
  });

  it("that resets its connections costs the server nothing", async () => {
    const hostile = createServer((socket) => socket.resetAndDestroy());
    await new Promise<void>((resolve) => hostile.listen(0, "127.0.0.1", resolve));
    api.engine.portOutside = (hostile.address() as AddressInfo).port;
    for (let count = 0; count < 20; count += 1) {
      const tunnel = await api.client.dial("one", 80).catch(() => undefined);
      tunnel?.on("error", () => undefined);
      tunnel?.write("x");
      tunnel?.destroy();
    }
    expect((await api.client.call("listSandboxes", {})).sandboxes).toHaveLength(1);
    hostile.close();
  });
});
