/** Clients of the gateway that take their time, over a real socket. */
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type RequestListener, type Server } from "node:http";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { limitSlowness, PATIENCE_OF_OUR_OWN } from "../../src/interfaces/gateway/slowness.ts";

const HEAD_MS = 150;
const REQUEST_MS = 300;
const HEAD = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\n";

let place: string;
let server: Server | undefined;

beforeEach(() => void (place = mkdtempSync(join(tmpdir(), "viv-slowness-"))));
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
  rmSync(place, { recursive: true, force: true });
});

async function dial(answer: RequestListener): Promise<Socket> {
  server = createServer(PATIENCE_OF_OUR_OWN, answer);
  limitSlowness(server, HEAD_MS, REQUEST_MS);
  server.listen(join(place, "socket"));
  await once(server, "listening");
  const socket = connect(join(place, "socket"));
  socket.on("error", () => undefined);
  await once(socket, "connect");
  return socket.resume();
}

const atOnce: RequestListener = (_, response) => response.end("ok");

/** Milliseconds until the other side has ended the connection. */
async function untilCut(socket: Socket): Promise<number> {
  const began = performance.now();
  // It may end as an error, where something was on its way.
  await new Promise((resolve) => void socket.once("close", resolve));
  return performance.now() - began;
}

/** The same while a head comes that has no end. */
async function untilSlowHeadIsCut(socket: Socket): Promise<number> {
  socket.write("GET / HTTP/1.1\r\nSlow: ");
  const sending = setInterval(() => socket.write("x"), HEAD_MS / 5);
  return untilCut(socket).finally(() => clearInterval(sending));
}

test("a head that comes byte by byte ends the connection", async () => {
  expect(await untilSlowHeadIsCut(await dial(atOnce))).toBeGreaterThan(HEAD_MS * 0.8);
});

test("so does the head of a later request", async () => {
  const socket = await dial(atOnce);
  socket.write(`${HEAD}body`);
  await once(socket, "data");
  expect(await untilSlowHeadIsCut(socket)).toBeGreaterThan(HEAD_MS * 0.8);
});

test("so does a body that does not come to its end", async () => {
  const socket = await dial((request) => request.resume());
  socket.write(HEAD);
  expect(await untilCut(socket)).toBeGreaterThan(REQUEST_MS * 0.8);
});

test("so does the head of a request whose body came after its answer", async () => {
  const socket = await dial(atOnce);
  socket.write(HEAD);
  await once(socket, "data");
  socket.write("body");
  expect(await untilSlowHeadIsCut(socket)).toBeGreaterThan(HEAD_MS * 0.5);
});

test("a whole request waits for its answer, read or not, and so does one that was sent behind it", async () => {
  const socket = await dial((_, response) => void delay(REQUEST_MS * 2).then(() => response.end("late answer")));
  socket.write(`${HEAD}body${HEAD}body`);
  let text = "";
  socket.on("data", (data) => (text += String(data)));
  await delay(REQUEST_MS * 3);
  expect(text.match(/late answer/g)).toHaveLength(2);
});
