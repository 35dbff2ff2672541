import { once } from "node:events";
import { readFileSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { connect, createConnection, createServer, type AddressInfo } from "node:net";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { dirname } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import type { VivError } from "../../src/base/schema/errors.ts";
import { startViv, viv } from "../support/viv.ts";
import { eventually, TestServer } from "../support/server.ts";
import { needs } from "../support/skip.ts";

/** An HTTP server that tells what it was asked, and speaks just enough WebSocket to send a short text back. */
const INSIDE = `
const { createServer } = require("node:http");
const { createHash } = require("node:crypto");
const [port, host] = process.argv.slice(2);
const server = createServer((request, response) => {
  if (request.url === "/moved") return response.writeHead(302, { location: "/there" }).end();
  let body = "";
  request.on("data", (chunk) => (body += chunk));
  request.on("end", () => response.setHeader("x-inside", "yes").end(JSON.stringify({ method: request.method, url: request.url, body, cookie: request.headers.cookie ?? null })));
});
server.on("upgrade", (request, socket) => {
  const accept = createHash("sha1").update(request.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest("base64");
  socket.write("HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Accept: " + accept + "\\r\\n\\r\\n");
  socket.on("data", (frame) => {
    if ((frame[0] & 15) !== 1) return socket.end();
    const length = frame[1] & 127, mask = frame.subarray(2, 6), data = Buffer.from(frame.subarray(6, 6 + length));
    for (let at = 0; at < length; at += 1) data[at] ^= mask[at % 4];
    const answer = Buffer.concat([Buffer.from("echo "), data]);
    socket.write(Buffer.concat([Buffer.from([0x81, answer.length]), answer]));
  });
});
server.listen(Number(port), host, () => console.log("listening"));
`;

const PORT = 38471;

/** Ports that listen in a network namespace, told by one of its processes. */
function listening(tables: string): number[] {
  return tables
    .split("\n")
    .filter((line) => line.trim().split(/\s+/)[3] === "0A")
    .map((line) => Number.parseInt(line.trim().split(/\s+/)[1]?.split(":").at(-1) ?? "0", 16));
}

describe("a port inside a sandbox", needs("root"), () => {
  let server: TestServer;
  let box: string;

  beforeAll(async () => {
    server = await TestServer.start({ config: { expose: [dirname(process.execPath)] }, files: { "inside.js": INSIDE } });
    box = (await server.create({ name: "ports" })).id;
    await serve(PORT, "127.0.0.1");
  });

  afterAll(async () => server.remove());

  async function serve(port: number, host: string): Promise<void> {
    const command = await server.sh(box, `exec ${process.execPath} inside.js ${port} ${host}`, { background: true });
    await eventually(
      () => server.client.call("inspectCommand", { sandbox: box, command: command.id }),
      ({ stdout }) => stdout.includes("listening"),
    );
  }

  function ask(
    path: string,
    options: { method?: string; body?: string; headers?: Record<string, string>; port?: number } = {},
  ): Promise<{ status: number; headers: NodeJS.Dict<string | string[]>; body: string }> {
    return new Promise((resolve, reject) => {
      const request = httpRequest(
        {
          socketPath: server.paths.socket,
          method: options.method ?? "GET",
          path: `/sandboxes/${box}/ports/${options.port ?? PORT}/http${path}`,
          headers: options.headers ?? {},
        },
        (answer) => void text(answer).then((body) => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body }), reject),
      );
      request.once("error", reject);
      request.end(options.body);
    });
  }

  test("BOX-6: answers HTTP through the server, without the caller's cookies, and redirects lead back to it", async () => {
    const answer = await ask("/a/b?c=d", { method: "POST", body: "content", headers: { cookie: "session=1" } });
    expect(answer).toMatchObject({ status: 200, headers: { "x-inside": "yes" } });
    expect(JSON.parse(answer.body)).toEqual({ method: "POST", url: "/a/b?c=d", body: "content", cookie: null });
    expect((await ask("/moved")).headers["location"]).toBe(`/sandboxes/${box}/ports/${PORT}/http/there`);
  });

  test("BOX-6: speaks WebSocket through the server", async () => {
    const socket = new WebSocket(`ws://localhost/sandboxes/${box}/ports/${PORT}/http/socket`, {
      createConnection: () => createConnection(server.paths.socket),
    });
    await once(socket, "open");
    socket.send("hello");
    const [message] = (await once(socket, "message")) as [Buffer];
    expect(message.toString()).toBe("echo hello");
    socket.close();
    await once(socket, "close");
  });

  test("BOX-6: is reached as a plain connection by a tunnel", async () => {
    const tunnel = await server.client.dial(box, PORT);
    tunnel.write("GET /tunnel HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    expect(await text(tunnel)).toContain('"url":"/tunnel"');
  });

  test("BOX-6: is found on ::1 as well", async () => {
    await serve(PORT + 1, "::1");
    expect((await ask("/six", { port: PORT + 1 })).status).toBe(200);
  });

  test("BOX-6: `viv port` opens a local port that leads to it, until it is told to stop", async () => {
    const child = startViv(server, ["port", "ports", String(PORT), "0", "--json"]);
    try {
      const [line] = (await once(createInterface(child.stdout), "line")) as [string];
      const { local } = JSON.parse(line) as { local: number };
      const answer = await fetch(`http://127.0.0.1:${local}/local`);
      expect(await answer.json()).toMatchObject({ url: "/local" });
      const many = await Promise.all(
        Array.from({ length: 20 }, async (_, index) => (await fetch(`http://127.0.0.1:${local}/${index}`)).status),
      );
      expect(many.every((status) => status === 200)).toBe(true);
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      expect((await ended)[0]).toBe(0);
    } finally {
      child.kill("SIGKILL");
    }
  });

  test("NW-12: a local port that leads to one sandbox is not given to another, nor is one that is taken", async () => {
    const other = await server.create();
    const taken = createServer().listen(0, "127.0.0.1");
    await once(taken, "listening");
    const child = startViv(server, ["port", "ports", String(PORT), "0", "--json"]);
    try {
      const [line] = (await once(createInterface(child.stdout), "line")) as [string];
      const { local } = JSON.parse(line) as { local: number };
      for (const port of [local, (taken.address() as AddressInfo).port])
        expect(viv(server, ["port", other.id, String(PORT), String(port)])).toMatchObject({ err: expect.stringContaining("is taken") });
      // A program that listens inside has a port of that sandbox, and not this one.
      const listen = `require("net").createServer((s) => s.end("stolen")).listen(${local}, "0.0.0.0", () => console.log("up"))`;
      const thief = await server.sh(other.id, `exec ${process.execPath} -e '${listen}'`, { background: true });
      await eventually(
        () => server.client.call("inspectCommand", { sandbox: other.id, command: thief.id }),
        ({ stdout }) => stdout.includes("up"),
      );
      expect(await (await fetch(`http://127.0.0.1:${local}/mine`)).json()).toMatchObject({ url: "/mine" });
    } finally {
      child.kill("SIGKILL");
      taken.close();
      await server.client.call("removeSandbox", { sandbox: other.id });
    }
  });

  test("BOX-6: where nothing listens is port_unreachable, by every way", async () => {
    const answer = await ask("/", { port: 9 });
    expect(answer.status).toBe(502);
    expect(JSON.parse(answer.body)).toEqual({
      error: {
        code: "port_unreachable",
        message: "Nothing listens on port 9 of the sandbox.",
        remedy: expect.stringContaining("listens inside"),
      },
    });
    await expect(server.client.dial(box, 9)).rejects.toMatchObject({ code: "port_unreachable" });
    const refused = await server.client.dial(box, 70_000).then(
      () => undefined,
      (error: VivError) => error,
    );
    expect(refused).toMatchObject({ code: "invalid_input", message: expect.stringContaining("1 to 65535") });
    expect(viv(server, ["port", "ports", "99999"])).toMatchObject({ code: 2, err: expect.stringContaining("PORT") });
  });

  test("BOX-6: opens nothing on the host", async () => {
    const inside = await server.sh(box, "cat /proc/net/tcp /proc/net/tcp6");
    expect(listening(inside.stdout)).toContain(PORT);
    const outside = ["tcp", "tcp6"].map((name) => readFileSync(`/proc/net/${name}`, "utf8")).join("\n");
    expect(listening(outside)).not.toContain(PORT);
    const direct = connect(PORT, "127.0.0.1");
    const [error] = (await once(direct, "error")) as [NodeJS.ErrnoException];
    expect(error.code).toBe("ECONNREFUSED");
  });
});
