import { once } from "node:events";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { WebSocket } from "ws";
import { loopbackDoor } from "../../src/interfaces/api/door.ts";
import { listen } from "../../src/interfaces/api/listen.ts";
import { openApiDocument } from "../../src/interfaces/api/openapi.ts";
import { Client } from "../../src/interfaces/client/client.ts";
import { CONTRACTS } from "../../src/base/schema/contracts.ts";
import { VivError } from "../../src/base/schema/errors.ts";
import type { VivEvent } from "../../src/base/schema/event.ts";
import { LIMITS } from "../../src/base/schema/limits.ts";
import { STREAMS } from "../../src/base/schema/routes.ts";
import { STREAM_ROUTES } from "../../src/base/schema/stream-routes.ts";
import { toBuffer } from "../../src/base/wire/wire.ts";
import { startApi, TOKEN, type ApiServer } from "../support/api-server.ts";
import { all, END, SANDBOX } from "../support/scripted-engine.ts";
import { workMs } from "../support/work.ts";

let api: ApiServer;

beforeEach(async () => {
  api = await startApi();
});

afterEach(() => api.close());

async function write(count: number, text = ""): Promise<void> {
  await api.store.change(async (change) => {
    for (let number = 0; number < count; number += 1) await change.event("server.started", null, { text });
  });
}

async function take(events: AsyncIterable<VivEvent>, count: number): Promise<number[]> {
  const sequences: number[] = [];
  for await (const event of events) {
    sequences.push(event.sequence);
    if (sequences.length === count) break;
  }
  return sequences;
}

const range = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, index) => from + index);

describe("operations", () => {
  it("reach the engine with parsed input and come back as their output", async () => {
    expect(await api.client.call("listSandboxes", { state: "running" })).toEqual({ sandboxes: [SANDBOX] });
    expect(await api.client.call("stopSandbox", { sandbox: "one" })).toEqual({ ...SANDBOX, state: "completed" });
    await api.client.call("listFiles", { sandbox: "one", path: "a b/ü&?#%", depth: 3 });
    expect(api.engine.calls.map((call) => call.input)).toEqual([
      { state: "running" },
      { sandbox: "one" },
      { sandbox: "one", path: "a b/ü&?#%", depth: 3, limit: 10_000 },
    ]);
  });

  it("throw the engine's errors with code, message and remedy", async () => {
    api.engine.answers["stopSandbox"] = () => {
      throw new VivError("illegal_transition", "It is completed already.", { remedy: "Do nothing." });
    };
    await expect(api.client.call("stopSandbox", { sandbox: "one" })).rejects.toMatchObject({
      code: "illegal_transition",
      message: "It is completed already.",
      remedy: "Do nothing.",
    });
    expect(api.defects).toEqual([]);
  });

  it("say internal, and tell the server's log, when something is broken", async () => {
    api.engine.answers["stopSandbox"] = () => {
      throw new TypeError("oops");
    };
    await expect(api.client.call("stopSandbox", { sandbox: "one" })).rejects.toMatchObject({ code: "internal" });
    expect(api.defects).toHaveLength(1);
  });

  it("throw server_unreachable when no server listens", async () => {
    const client = new Client({ socket: "/nonexistent/viv.sock" });
    await expect(client.call("status", {})).rejects.toMatchObject({ code: "server_unreachable" });
    await expect(client.exec("one", { command: ["echo"] })).rejects.toMatchObject({ code: "server_unreachable" });
  });
});

describe("documentation (API-1)", () => {
  it("describes every operation and stream", async () => {
    const answer = await fetch(`http://127.0.0.1:${api.port}/openapi.json`);
    const document = (await answer.json()) as {
      paths: Record<string, Record<string, { operationId: string }>>;
      components: { schemas: object };
    };
    const described = Object.values(document.paths).flatMap((methods) =>
      Object.values(methods).map((operation) => operation.operationId.split("-")[0]),
    );
    expect(new Set(described)).toEqual(new Set([...Object.keys(CONTRACTS), ...Object.keys(STREAM_ROUTES)]));
    const referenced = [...JSON.stringify(document).matchAll(/#\/components\/schemas\/(\w+)/g)].map((match) => match[1] ?? "");
    for (const name of referenced) expect(Object.keys(document.components.schemas)).toContain(name);
    expect(JSON.stringify(document)).not.toContain("$defs");
  });

  it("shows every stream: WebSockets with the schemas of their messages, event streams with that of their events", () => {
    const { paths, components } = openApiDocument("0");
    const schemas = (one: object): string[] => [...JSON.stringify(one).matchAll(/schemas\/(\w+)/g)].map((match) => match[1] ?? "");
    for (const { path, method, output } of Object.values(STREAM_ROUTES)) {
      const operation = paths[path]?.[method === "put" || method === "post" ? method : "get"];
      expect(Object.keys(operation?.responses ?? {}), path).toContain("messages" in output ? "101" : "200");
      expect(operation?.["x-websocket"] !== undefined, path).toBe("messages" in output);
      expect(operation?.responses["200"]?.content?.["text/event-stream"] !== undefined, path).toBe("events" in output);
    }
    expect(schemas(paths[STREAMS.exec.path]?.["get"]?.["x-websocket"] ?? {})).toEqual(["ExecOpen", "ClientMessage", "ServerMessage"]);
    expect(schemas(paths[STREAMS.events.path]?.["get"]?.responses["200"] ?? {})).toEqual(["Event"]);
    expect(Object.keys(components.schemas)).toEqual(
      expect.arrayContaining(["ExecOpen", "ClientMessage", "ServerMessage", "TunnelMessage"]),
    );
  });

  it("puts every route into a group, and has no empty one", () => {
    const { paths, tags } = openApiDocument("0");
    const used = Object.values(paths).flatMap((methods) => Object.values(methods).flatMap((operation) => operation.tags));
    expect(new Set(used)).toEqual(new Set(tags.map(({ name }) => name)));
  });

  it("IDE-2: is a page that needs nothing from outside", async () => {
    const answer = await fetch(`http://127.0.0.1:${api.port}/docs`);
    const page = await answer.text();
    expect(page).toContain("/sandboxes/{sandbox}/fork");
    expect(page).not.toMatch(/(?:src|href)="(?:https?:)?\/\//);
    expect(answer.headers.get("content-security-policy")).toContain("default-src 'none'");
  });
});

describe("events (API-1)", () => {
  it("are replayed after a sequence number and go on live", async () => {
    await write(300);
    const stop = new AbortController();
    const heard = take(api.client.events(250, { signal: stop.signal }), 100);
    await vi.waitFor(() => expect(api.engine.feed.listeners).toBe(1));
    await write(50);
    expect(await heard).toEqual(range(251, 350));
    stop.abort();
    await vi.waitFor(() => expect(api.engine.feed.listeners).toBe(0));
  });

  it("go on after the Last-Event-ID that a browser sends, with the sequence number as id", async () => {
    await write(5);
    const stop = new AbortController();
    const answer = await fetch(`http://127.0.0.1:${api.port}/events`, {
      headers: { authorization: `Bearer ${TOKEN}`, "last-event-id": "3" },
      signal: stop.signal,
    });
    expect(answer.headers.get("content-type")).toBe("text/event-stream");
    let text = "";
    for await (const chunk of answer.body ?? []) {
      text += Buffer.from(chunk).toString();
      if (text.includes("id: 5")) break;
    }
    expect([...text.matchAll(/^id: (\d+)$/gm)].map((match) => match[1])).toEqual(["4", "5"]);
    const wrong = await fetch(`http://127.0.0.1:${api.port}/events`, {
      headers: { authorization: `Bearer ${TOKEN}`, "last-event-id": "x" },
    });
    expect(wrong.status).toBe(400);
  });

  it("cost a bounded amount of memory for a listener that does not read, which loses none", { timeout: 60_000 }, async () => {
    const socket = connect(api.socketPath);
    socket.write("GET /events HTTP/1.1\r\nhost: viv\r\n\r\n");
    socket.pause();
    await vi.waitFor(() => expect(api.engine.feed.listeners).toBe(1));
    for (let round = 0; round < 60; round += 1) {
      await write(100, "x".repeat(2_000));
      expect(api.engine.feed.bufferedBytes).toBeLessThanOrEqual(LIMITS.eventListenerBufferBytes);
    }
    let text = "";
    let last = 0;
    for await (const chunk of socket as AsyncIterable<Buffer>) {
      text = (text + chunk.toString()).slice(-100_000);
      for (const match of text.matchAll(/\nid: (\d+)\n/g)) {
        const sequence = Number(match[1]);
        if (sequence <= last) continue;
        expect(sequence).toBe(last + 1);
        last = sequence;
      }
      if (last === 6_000) break;
    }
    expect(last).toBe(6_000);
  });
});

describe("commands over a WebSocket (API-1)", () => {
  it("get input and give output, both unchanged and in order", async () => {
    const stream = await api.client.exec("one", { command: ["echo"], stdin: true, terminal: { rows: 24, cols: 80 } });
    expect(stream.command.command).toEqual(["echo"]);
    stream.resize(50, 132);
    stream.signal("INT");
    const sent = Buffer.from(Array.from({ length: 2 * 1024 ** 2 }, (_, index) => (index * 31) % 251));
    const writing = (async () => {
      for (let at = 0; at < sent.length; at += 60_000) await stream.write(sent.subarray(at, at + 60_000));
      stream.endInput();
    })();
    const got: Uint8Array[] = [];
    const rest: unknown[] = [];
    for await (const chunk of stream.output) {
      if (chunk.stream === "stdout") got.push(chunk.data);
      else rest.push(chunk.stream === "gap" ? chunk.bytes : Buffer.from(chunk.data).toString());
    }
    await writing;
    expect(Buffer.concat(got).equals(sent)).toBe(true);
    expect(rest).toEqual([3, "done"]);
    expect(await stream.end).toEqual(END);
    expect(api.engine.commands[0]?.seen).toEqual(["resize 50x132", "signal INT"]);
    expect(api.engine.opened[0]).toMatchObject({ onDisconnect: "kill", stdin: true, terminal: { rows: 24, cols: 80 } });
  });

  it("wait while their output is not read", async () => {
    const stream = await api.client.exec("one", { command: ["yes"] });
    const command = api.engine.commands[0];
    let before = -1;
    await vi.waitFor(
      () => {
        const now = command?.produced ?? 0;
        const still = now === before;
        before = now;
        expect(still).toBe(true);
      },
      { timeout: 10_000, interval: 200 },
    );
    expect(command?.produced).toBeLessThan(8 * 1024 ** 2);
    let read = 0;
    for await (const chunk of stream.output) {
      if (chunk.stream === "stdout") read += chunk.data.length;
      if (read > 16 * 1024 ** 2) break;
    }
    stream.close();
    await vi.waitFor(() => expect(command?.closed).toBe(true));
  });

  it("make a caller wait while they do not read their input, and notice when it goes", { timeout: 20_000 }, async () => {
    const socket = new WebSocket("ws://localhost/sandboxes/one/exec", { createConnection: () => connect(api.socketPath) });
    await once(socket, "open");
    socket.send(JSON.stringify({ command: ["stuck"], stdin: true }));
    await once(socket, "message");
    for (let count = 0; count < 100; count += 1) socket.send(Buffer.alloc(60_000));
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(socket.bufferedAmount).toBeGreaterThan(4 * 1024 ** 2);
    socket.terminate();
    await vi.waitFor(() => expect(api.engine.commands[0]?.closed).toBe(true), { timeout: 10_000 });
  });

  it("take what a caller sends right behind the first message, and are told of in messages that the stream declares", async () => {
    const socket = new WebSocket("ws://localhost/sandboxes/one/exec", { createConnection: () => connect(api.socketPath) });
    const texts: string[] = [];
    socket.on("message", (data, binary) => !binary && texts.push(toBuffer(data).toString()));
    await once(socket, "open");
    socket.send(JSON.stringify({ command: ["echo"], stdin: true }));
    socket.send(JSON.stringify({ type: "stdin-end" }));
    await once(socket, "close");
    const { server } = STREAM_ROUTES.exec.output.messages;
    const messages = texts.map((text): unknown => JSON.parse(text));
    expect(messages).toEqual([expect.objectContaining({ type: "started" }), { type: "gap", bytes: 3 }, { type: "exit", end: END }]);
    expect(messages.map((message) => server.parse(message))).toEqual(messages);
  });

  it("are refused where the path is no text", async () => {
    const socket = new WebSocket("ws://localhost/sandboxes/%ff/exec", { createConnection: () => connect(api.socketPath) });
    socket.on("error", () => undefined);
    const [, answer] = (await once(socket, "unexpected-response")) as [unknown, IncomingMessage];
    expect(answer.statusCode).toBe(400);
  });

  it("end as they were opened when the caller goes away (F-47)", async () => {
    const stream = await api.client.exec("one", { command: ["echo"], stdin: true });
    stream.close();
    await vi.waitFor(() => expect(api.engine.commands[0]?.closed).toBe(true));
  });

  it("say what is wrong with what they were asked", async () => {
    await expect(api.client.exec("missing", { command: ["echo"] })).rejects.toMatchObject({
      code: "not_found",
      message: "There is no sandbox called missing.",
    });
    await expect(api.client.exec("one", { command: [] })).rejects.toMatchObject({
      code: "invalid_input",
      message: expect.stringContaining('"command"'),
    });
    await expect(api.client.exec("one", { command: ["echo"], privileged: true } as { command: string[] })).rejects.toMatchObject({
      code: "invalid_input",
    });
    await expect(api.client.exec("NOT A NAME", { command: ["echo"] })).rejects.toMatchObject({ code: "invalid_input" });
    const stream = await api.client.exec("one", { command: ["echo"], stdin: true });
    stream.resize(0, 0);
    await expect(stream.end).rejects.toMatchObject({ code: "invalid_input" });
  });

  it("can be attached to", async () => {
    const stream = await api.client.attach("one", api.engine.commands[0]?.command.id ?? `cmd${"0".repeat(26)}`, { stdin: true });
    await stream.write(Buffer.from("hello"));
    stream.endInput();
    const chunks = await all(stream.output);
    expect(chunks[0]).toEqual({ stream: "stdout", data: Buffer.from("hello") });
    await expect(api.client.attach("one", "nonsense")).rejects.toMatchObject({ code: "invalid_input" });
  });

  it("run a hundred at once", { timeout: 30_000 }, async () => {
    const ends = Array.from({ length: 100 }, async (_, number) => {
      const stream = await api.client.exec("one", { command: ["echo"], stdin: true });
      await stream.write(Buffer.from(String(number)));
      stream.endInput();
      const [first] = await all(stream.output);
      await stream.end;
      return first?.stream === "stdout" ? Number(first.data.toString()) : -1;
    });
    expect(await Promise.all(ends)).toEqual(range(0, 99));
  });
});

describe("the servers", () => {
  it("have a socket that only its owner reaches", () => {
    expect(statSync(api.socketPath).mode & 0o777).toBe(0o600);
  });

  it("refuse a folder that others reach, and a socket that is in use", async () => {
    const options = { version: "0", onError: () => undefined };
    await expect(listen(api.engine, { ...options, socketPath: api.socketPath })).rejects.toMatchObject({ code: "server_running" });
    await expect(listen(api.engine, { ...options, socketPath: "/tmp/viv.sock" })).rejects.toMatchObject({ code: "config_invalid" });
    const folder = mkdtempSync(join(tmpdir(), "viv-api-"));
    await expect(
      listen(api.engine, { ...options, socketPath: join(folder, "a"), tcp: { door: loopbackDoor(api.port), token: "t" } }),
    ).rejects.toMatchObject({ code: "config_invalid" });
    rmSync(folder, { recursive: true });
  });

  it("end streams, and let commands go on, when they close; requests under way get their answer", async () => {
    const stop = new AbortController();
    const events = take(api.client.events(0, { signal: stop.signal }), 1);
    const stream = await api.client.exec("one", { command: ["echo"], stdin: true });
    const answer = Promise.withResolvers<unknown>();
    api.engine.answers["stopSandbox"] = () => answer.promise;
    const call = api.client.call("stopSandbox", { sandbox: "one" });
    await vi.waitFor(() => expect(api.engine.calls).toHaveLength(1));
    await vi.waitFor(() => expect(api.engine.feed.listeners).toBe(1));
    const closed = api.listening.close();
    expect(await events).toEqual([]);
    await expect(stream.end).rejects.toMatchObject({ code: "server_unreachable" });
    answer.resolve(SANDBOX);
    expect(await call).toEqual(SANDBOX);
    await closed;
    expect(api.engine.commands[0]?.closed).toBe(false);
    await expect(api.client.call("listSandboxes", {})).rejects.toMatchObject({ code: "server_unreachable" });
  });

  it("answer an operation with a millisecond of work or two, the caller's included", async () => {
    const started = workMs();
    for (let count = 0; count < 500; count += 1) await api.client.call("listSandboxes", {});
    expect((workMs() - started) / 500).toBeLessThan(2);
  });

  it("tell the engine when a caller goes away", async () => {
    const aborted = Promise.withResolvers<unknown>();
    const waiting = Promise.withResolvers<unknown>();
    Object.defineProperty(api.engine, "operations", {
      value: {
        ...api.engine.operations,
        stopSandbox: (_: unknown, signal: AbortSignal) => {
          signal.addEventListener("abort", () => {
            aborted.resolve(signal.reason);
            waiting.reject(new VivError("cancelled", "gone"));
          });
          return waiting.promise;
        },
      },
    });
    const request = httpRequest({ socketPath: api.socketPath, method: "POST", path: "/sandboxes/one/stop" });
    request.on("error", () => undefined);
    request.end();
    await once(request, "finish");
    setTimeout(() => request.destroy(), 50);
    expect(await aborted.promise).toMatchObject({ code: "cancelled" });
  });
});
