import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { isPlain, LocalCalls } from "./local-calls.ts";

const REQUEST = { method: "POST", path: "/a", body: '{"é":1}', contentType: "application/json" };
const closing: (() => void)[] = [];

afterEach(() => closing.splice(0).forEach((close) => close()));

/** A server that answers each piece that it hears. */
async function answering(answer: (heard: string, socket: Socket) => void): Promise<{ calls: LocalCalls; connections: () => number }> {
  const place = mkdtempSync(join(tmpdir(), "viv-calls-"));
  const sockets: Socket[] = [];
  const server: Server = createServer((socket) => {
    sockets.push(socket);
    socket.on("error", () => undefined).on("data", (data) => answer(data.toString("utf8"), socket));
  });
  await new Promise<void>((resolve) => server.listen(join(place, "s"), resolve));
  const calls = new LocalCalls(join(place, "s"));
  closing.push(() => {
    calls.close();
    for (const socket of sockets) socket.destroy();
    server.close();
    rmSync(place, { recursive: true });
  });
  return { calls, connections: () => sockets.length };
}

test("calls one after the other share a connection, and each says how many bytes its body has", async () => {
  const heard: string[] = [];
  const { calls, connections } = await answering((text, socket) => {
    heard.push(text);
    socket.write("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nföo");
  });
  for (let index = 0; index < 3; index += 1) expect(await calls.ask(REQUEST)).toEqual({ status: 200, text: "föo" });
  expect(connections()).toBe(1);
  expect(heard[0]).toContain('Content-Length: 8\r\n\r\n{"é":1}');
});

test("an answer may come byte by byte", async () => {
  const { calls } = await answering((_, socket) => {
    const bytes = [...Buffer.from("HTTP/1.1 404 Not Found\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\n{}")];
    const next = (): void => {
      const byte = bytes.shift();
      if (byte !== undefined) socket.write(Buffer.from([byte]), () => setImmediate(next));
    };
    next();
  });
  expect(await calls.ask(REQUEST)).toEqual({ status: 404, text: "{}" });
});

test("a connection that is to be closed is not used again, also where its end is the answer's", async () => {
  const answers = ["HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 1\r\n\r\na", "HTTP/1.1 400 Bad Request\r\n\r\nbc"];
  const { calls, connections } = await answering((_, socket) => socket.end(answers.shift() ?? ""));
  expect(await calls.ask(REQUEST)).toEqual({ status: 200, text: "a" });
  expect(await calls.ask(REQUEST)).toEqual({ status: 400, text: "bc" });
  expect(connections()).toBe(2);
});

test.each([
  ["an end before the answer", ""],
  ["an end within the body", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nshort"],
  ["an end within the head", "HTTP/1.1 200 OK\r\ncont"],
  ["more than was said", "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nlong"],
  ["what is not HTTP", "hello\r\n\r\n"],
])("%s is a server that can't be reached", async (_, words) => {
  const { calls } = await answering((__, socket) => socket.end(words));
  await expect(calls.ask(REQUEST)).rejects.toMatchObject({ code: "server_unreachable" });
});

test("a call that is cancelled closes its connection, and the next one has another", async () => {
  let silent = true;
  const closed = Promise.withResolvers<void>();
  const { calls, connections } = await answering((_, socket) => {
    if (!silent) return void socket.write("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    socket.once("close", () => closed.resolve());
    cancel.abort();
  });
  const cancel = new AbortController();
  await expect(calls.ask({ ...REQUEST, signal: cancel.signal })).rejects.toMatchObject({ code: "cancelled" });
  await closed.promise;
  silent = false;
  expect((await calls.ask(REQUEST)).status).toBe(200);
  expect(connections()).toBe(2);
  await expect(calls.ask({ ...REQUEST, signal: AbortSignal.abort() })).rejects.toMatchObject({ code: "cancelled" });
});

test("a path that could end the first line of a request does not go this way", () => {
  expect(isPlain(REQUEST)).toBe(true);
  expect(isPlain({ method: "GET", path: "/a\r\nb: c" })).toBe(false);
  expect(isPlain({ method: "GET", path: "/a b" })).toBe(false);
});
