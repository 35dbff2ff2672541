import { once } from "node:events";
import { existsSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { buffer } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { CellProcess } from "../support/cell-process.ts";
import { needs } from "../support/skip.ts";

/** Servers inside, one of them on a Unix socket. */
const inside = (path: string): string => `
  const { createServer } = require("node:net");
  const echo = createServer({ allowHalfOpen: true }, (socket) => {
    let size = 0;
    socket.on("data", (data) => (size += data.length));
    socket.on("end", () => socket.end("got " + size));
    socket.on("error", () => {});
  });
  const source = createServer((socket) => { socket.on("error", () => {}); socket.end(Buffer.alloc(20000000, "s")); });
  const letters = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", (letter) => socket.end(Buffer.alloc(5000000, letter)));
  });
  createServer((socket) => socket.end("by path")).listen(${JSON.stringify(path)});
  echo.listen(7001, "127.0.0.1", () => source.listen(7002, "::1", () => letters.listen(7004, "127.0.0.1", () => console.log("ready"))));`;

/** A client inside: sends, ends its side, prints what comes back. */
const caller = `
  const socket = require("node:net").connect({ port: 7003, host: "127.0.0.1", allowHalfOpen: true });
  socket.on("error", (error) => console.log(error.code));
  socket.on("data", (data) => process.stdout.write(data));
  socket.end("from inside");`;

describe("ports of a sandbox", needs("linux", "root", "compiler"), () => {
  let cell: CellProcess;
  let outside: Server | undefined;
  beforeAll(async () => {
    cell = await new CellProcess().start("forward:7003:outside");
    const server = await cell.client.exec(cell.request([process.execPath, "-e", inside(join(cell.folder, "inside"))]));
    for await (const chunk of server.output) if (chunk.stream === "stdout") break;
  }, 60_000);
  afterAll(async () => {
    outside?.close();
    await cell?.remove();
    expect(cell?.complaints).toBe("");
  });

  const finish = async (socket: Duplex): Promise<Buffer> => buffer(socket);

  test("can be dialled, and a half-close travels both ways", async () => {
    const socket = await cell.client.dial(7001);
    socket.end(Buffer.alloc(10_000_000));
    expect((await finish(socket)).toString()).toBe("got 10000000");
  });

  test("can be Unix sockets, named by their path inside", async () => {
    const socket = await cell.client.dial(join(cell.folder, "inside"));
    socket.end();
    expect((await finish(socket)).toString()).toBe("by path");
    for (const path of ["/tmp/none.sock", "/etc/passwd", "/tmp"])
      await expect(cell.client.dial(path), path).rejects.toMatchObject({ code: "port_unreachable" });
    for (const path of ["tmp/relative", `/${"long".repeat(30)}`])
      await expect(cell.client.dial(path), path).rejects.toMatchObject({ code: "invalid_input" });
  });

  test("bring everything to a slow reader", async () => {
    const socket = await cell.client.dial(7002, "::1");
    expect((await finish(socket)).length).toBe(20_000_000);
  });

  test("bring each reader its own bytes, also while others stand still with full buffers", async () => {
    const letters = ["a", "b", "c", "d", "e", "f"];
    const sockets = await Promise.all(letters.map(() => cell.client.dial(7004)));
    for (const [index, socket] of sockets.entries()) socket.write(letters[index]);
    // One after the other: what comes for the later ones waits in every buffer on the way.
    for (const [index, socket] of sockets.entries()) {
      const expected = Buffer.alloc(5_000_000, letters[index]);
      expect((await finish(socket)).equals(expected)).toBe(true);
    }
  });

  test("without a listener are refused", async () => {
    await expect(cell.client.dial(7999)).rejects.toMatchObject({ code: "port_unreachable" });
  });

  test("can be dialled 100 times at once", async () => {
    const answers = await Promise.all(
      Array.from({ length: 100 }, async (_, number) => {
        const socket = await cell.client.dial(7001);
        socket.end(Buffer.alloc(number));
        return (await finish(socket)).toString();
      }),
    );
    expect(answers).toEqual(answers.map((_, number) => `got ${number}`));
  });

  test("that are forwarded lead to the socket outside, and nowhere when it is not there", async () => {
    expect(existsSync(join(cell.run, "outside"))).toBe(false);
    expect((await cell.collect([process.execPath, "-e", caller])).stdout).toBe("ECONNRESET\n");
    outside = createServer({ allowHalfOpen: true }, (socket) => {
      void buffer(socket).then((data) => socket.end(`outside heard: ${data.toString()}`));
    }).listen(join(cell.run, "outside"));
    await once(outside, "listening");
    expect((await cell.collect([process.execPath, "-e", caller])).stdout).toBe("outside heard: from inside");
  });

  test("leave nothing behind", async () => {
    const sockets = await Promise.all(Array.from({ length: 20 }, () => cell.client.dial(7001)));
    for (const socket of sockets) socket.destroy();
    // /proc/1/fd is closed to those inside; the server's own count of connections tells.
    const count = `const net=require("node:fs").readFileSync("/proc/net/tcp","utf8");console.log(net.split("\\n").filter(l=>/:1B59 .* 01 /.test(l)).length)`;
    await vi.waitFor(async () => expect((await cell.collect([process.execPath, "-e", count])).stdout).toBe("0\n"), 5000);
  });
});
