/** What is made ready while the record of a connection is on its way to the disk. */
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { open } from "node:fs/promises";
import { createServer, type AddressInfo, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Dialling, dialFirst } from "../../src/rules/network/dialling.ts";
import { Gate, type GateOptions } from "../../src/rules/network/gate.ts";
import { Session } from "../../src/rules/network/session.ts";
import { needs } from "../support/skip.ts";

const ADDRESS = "127.0.0.1";

describe("a connection that is made ready", needs("linux"), () => {
  const folder = mkdtempSync(join(tmpdir(), "viv-dialling-"));
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
  afterAll(() => {
    server.close();
    rmSync(folder, { recursive: true, force: true });
  });

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
    expect(await dialFirst([ADDRESS], port, gone.signal, new Dialling(undefined))).toBeUndefined();
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(accepted).toBe(before);
  });

  test("waits for the record alone where all threads of the server are busy", async () => {
    const pipe = join(folder, "pipe");
    execFileSync("mkfifo", [pipe]);
    const count = Number(process.env["UV_THREADPOOL_SIZE"] ?? 4);
    // Each holds a thread until the other end is there.
    const held = Array.from({ length: count }, () => open(pipe, "r"));
    try {
      expect(await connected(() => undefined)).toBe("connected");
    } finally {
      execFileSync("sh", ["-c", `exec 3<>"$0"; sleep 0.3`, pipe]);
      for (const file of await Promise.all(held)) await file.close();
    }
  }, 10_000);

  test("is followed by the next address where the first one refuses", async () => {
    const outside = await dialFirst(["127.0.0.9", ADDRESS], port, undefined, new Dialling(undefined));
    expect(outside?.socket.remoteAddress).toBe(ADDRESS);
    outside?.cut();
  });
});
