/** What an open page costs the server: a stream of events holds nothing of what it has sent, and a connection nothing of the requests before. */
import { once } from "node:events";
import { Agent, createServer, get, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sendMessages, type Message } from "../../src/interfaces/api/sse.ts";
import { startApi, type ApiServer } from "../support/api-server.ts";

const MESSAGES = 100_000;
const MIB = 1024 * 1024;
/** One promise that is kept for each message is 96 bytes: ten times this. */
const GROWS = MIB;

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

function heldBytes(): number {
  collect();
  return process.memoryUsage().heapUsed;
}

/** Sends messages to one client, and tells after each quarter what the process holds. */
async function heldWhile(send: (outgoing: ServerResponse, messages: AsyncIterable<Message>) => void): Promise<number[]> {
  const held: number[] = [];
  async function* messages(): AsyncGenerator<Message, void, void> {
    for (let index = 0; index <= MESSAGES; index += 1) {
      if (index % (MESSAGES / 4) === 0) held.push(heldBytes());
      yield { id: index, data: { said: "something" } };
    }
  }
  const server = createServer((_, outgoing) => send(outgoing, messages())).listen(0, "127.0.0.1");
  await once(server, "listening");
  const asked = get({ host: "127.0.0.1", port: (server.address() as AddressInfo).port });
  const [answer] = (await once(asked, "response")) as [IncomingMessage];
  await once(answer.resume(), "end");
  server.close();
  return held;
}

describe("a stream of events that is open for a day (WEB-1)", () => {
  it("holds nothing of what it has sent", async () => {
    const held = await heldWhile((outgoing, messages) => sendMessages(outgoing, messages, new AbortController()));
    expect(held).toHaveLength(5);
    expect((held[4] ?? 0) - (held[1] ?? 0)).toBeLessThan(GROWS);
  });

  it("is measured by a way that sees one promise kept for each message", async () => {
    const kept: Promise<unknown>[] = [];
    const held = await heldWhile((outgoing, messages) => {
      async function* keeping(): AsyncGenerator<Message, void, void> {
        for await (const message of messages) {
          kept.push(Promise.resolve());
          yield message;
        }
      }
      sendMessages(outgoing, keeping(), new AbortController());
    });
    expect(kept.length).toBeGreaterThan(MESSAGES);
    expect((held[4] ?? 0) - (held[1] ?? 0)).toBeGreaterThan(GROWS);
  });
});

describe("a browser's connection that is used for hours (WEB-1)", () => {
  let api: ApiServer;
  beforeAll(async () => {
    api = await startApi();
  });
  afterAll(() => api.close());

  it("is watched once, not once for each request, and is still cut off with its session", async () => {
    const own = `http://127.0.0.1:${api.port}`;
    const { secret } = await api.sessions.link(api.port, false);
    const answer = await fetch(`${own}/dashboard/login`, {
      method: "POST",
      headers: { "content-type": "application/json", origin: own },
      body: JSON.stringify({ link: secret }),
    });
    const { key, session } = (await answer.json()) as { key: string; session: { id: string } };
    const headers = { cookie: (answer.headers.get("set-cookie") ?? "").split(";")[0] ?? "", "viv-key": key };
    const warnings: string[] = [];
    const hear = (warning: Error): void => void warnings.push(warning.name);
    process.on("warning", hear);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const ask = async (): Promise<{ status: number | undefined; socket: Socket }> => {
      const [heard] = (await once(get(`${own}/sandboxes`, { agent, headers }), "response")) as [IncomingMessage];
      const { statusCode: status, socket } = heard;
      await once(heard.resume(), "end");
      return { status, socket };
    };
    const first = await ask();
    expect(first.status).toBe(200);
    for (let index = 0; index < 20; index += 1) expect((await ask()).socket).toBe(first.socket);
    // Node warns of the eleventh listener for one event.
    expect(warnings).toEqual([]);
    const cut = once(first.socket, "close");
    await api.sessions.end(session.id);
    await cut;
    process.off("warning", hear);
    agent.destroy();
  });
});
