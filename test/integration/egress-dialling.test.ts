/** Nothing is dialled before its record is on the disk, and nobody is kept waiting for an address that does not answer. */
import { once } from "node:events";
import { createServer, type AddressInfo, type Server } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { dialFirst } from "../../src/rules/network/dialling.ts";
import { Gate, type GateOptions } from "../../src/rules/network/gate.ts";
import { Session } from "../../src/rules/network/session.ts";
import { needs } from "../support/skip.ts";

const ADDRESS = "127.0.0.1";

describe("a connection to the outside", needs("linux"), () => {
  let server: Server;
  let port: number;
  let accepted = 0;
  beforeAll(async () => {
    server = createServer((socket) => {
      accepted += 1;
      socket.on("error", () => undefined).end();
    }).listen(0, ADDRESS);
    await once(server, "listening");
    port = (server.address() as AddressInfo).port;
  });
  afterAll(() => void server.close());

  function gate(record: GateOptions["record"]): { readonly gate: Gate; readonly session: Session } {
    const opened = [{ host: ADDRESS, ports: [port], tcp: true }];
    const made = new Gate({ resolve: async () => [], opened, ownPorts: () => [], listens: () => false, record });
    return { gate: made, session: new Session("sb_1", { mode: "allow-list", allow: [], production: [], ports: [] }) };
  }

  async function connected(record: GateOptions["record"], signal?: AbortSignal): Promise<string> {
    const { gate: made, session } = gate(record);
    const question = { host: ADDRESS, port, protocol: "connect" } as const;
    const permitted = await made.permit(session, question, signal);
    if (permitted.verdict === "deny") return permitted.code;
    const opened = await made.connect(session, question, permitted, signal);
    if ("verdict" in opened) return opened.code;
    opened.outside.cut();
    return "connected";
  }

  test("sends nothing before its record is written, nor if it can't be", async () => {
    const before = accepted;
    let written = (): void => undefined;
    const slow = connected(() => new Promise((resolve) => (written = resolve)));
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(accepted).toBe(before);
    written();
    expect(await slow).toBe("connected");
    await expect.poll(() => accepted).toBe(before + 1);
    expect(await connected(() => Promise.reject(new Error("full")))).toBe("not_recorded");
    expect(accepted).toBe(before + 1);
  });

  test("sends nothing if its client hangs up while the record is written", async () => {
    const before = accepted;
    const gone = new AbortController();
    const hungUp = async (): Promise<void> => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      gone.abort();
    };
    expect(await connected(hungUp, gone.signal)).toBe("unreachable");
    expect(await dialFirst([ADDRESS], port, gone.signal)).toBeUndefined();
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(accepted).toBe(before);
  });

  test("is followed by the next address where the first one refuses", async () => {
    const outside = await dialFirst(["127.0.0.9", ADDRESS], port, undefined);
    expect(outside?.socket.remoteAddress).toBe(ADDRESS);
    outside?.cut();
  });
});
