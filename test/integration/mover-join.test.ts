/** Connections that the server has made and gives to the mover, as local ports do. The mover is built with sanitizers. */
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Move } from "../../src/base/host/moved-connection.ts";
import { Mover } from "../../src/base/host/mover.ts";
import { sanitizedMover } from "../support/sanitized-mover.ts";
import { needs } from "../support/skip.ts";

const LARGE = Buffer.alloc(5_000_000, "0123456789abcdef");

describe("two connections of the server", needs("linux", "compiler"), () => {
  const folder = mkdtempSync(join(tmpdir(), "viv-join-"));
  const path = join(folder, "inside");
  let mover: Mover;
  let inside: Server;
  let local: Server;
  let take: (socket: Socket) => void;
  beforeAll(async () => {
    mover = new Mover({ program: sanitizedMover(), log: { info: () => undefined, warn: () => undefined } });
    // Speaks first, so that the server has read something before the mover gets it; then it sends back what it got.
    inside = createServer({ allowHalfOpen: true }, (socket) => {
      socket.on("error", () => undefined);
      socket.write("hello ");
      void buffer(socket).then(
        (data) => socket.end(data),
        () => undefined,
      );
    }).listen(path);
    local = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) => take(Object.assign(socket, { server: null })));
    local.listen(0, "127.0.0.1");
    await Promise.all([once(inside, "listening"), once(local, "listening")]);
  }, 60_000);
  afterAll(async () => {
    await mover?.close();
    inside?.close();
    local?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** A caller's connection, and the same as the server has it. */
  async function called(): Promise<{ caller: Socket; unread: Socket }> {
    const taken = new Promise<Socket>((resolve) => (take = resolve));
    const caller = connect({ port: (local.address() as AddressInfo).port, host: "127.0.0.1", allowHalfOpen: true });
    caller.on("error", () => undefined);
    return { caller, unread: await taken };
  }

  async function dialled(): Promise<Socket> {
    const socket = connect({ path, allowHalfOpen: true });
    socket.on("error", () => undefined);
    const [first] = (await once(socket, "data")) as [Buffer];
    socket.pause();
    socket.unshift(first);
    return socket;
  }

  async function joined(unread: Socket): Promise<Move> {
    const led = await mover.join(await dialled(), unread);
    if (led === undefined) throw new Error("the mover has no program");
    return led;
  }

  test("are joined whole, with what the server had read already, and a half-close is kept", async () => {
    const { caller, unread } = await called();
    const led = await joined(unread);
    caller.end(LARGE);
    expect((await buffer(caller)).equals(Buffer.concat([Buffer.from("hello "), LARGE]))).toBe(true);
    expect(await led.ended).toMatchObject({ isWhole: true });
  });

  test("are cut off on both sides", async () => {
    const { caller, unread } = await called();
    const led = await joined(unread);
    caller.resume();
    const closed = new Promise((resolve) => caller.once("close", resolve));
    led.cut();
    expect(await led.ended).toMatchObject({ isWhole: false });
    await closed;
  });

  test("are not joined once one of them is gone, and the other ends", async () => {
    const { caller, unread } = await called();
    const read = await dialled();
    read.destroy();
    await expect(mover.join(read, unread)).rejects.toMatchObject({ code: "no_capacity" });
    caller.destroy();
    const again = await called();
    again.unread.destroy();
    await expect(mover.join(await dialled(), again.unread)).rejects.toThrow();
  });

  test("end with the mover; the next ones are joined by another one", async () => {
    const { caller, unread } = await called();
    const led = await joined(unread);
    caller.resume();
    const closed = new Promise((resolve) => caller.once("close", resolve));
    process.kill(mover.pid ?? 0, "SIGKILL");
    expect(await led.ended).toMatchObject({ isWhole: false });
    caller.end();
    await closed;
    const next = await called();
    await mover.join(await dialled(), next.unread);
    next.caller.end("again");
    expect(String(await buffer(next.caller))).toBe("hello again");
  });
});
