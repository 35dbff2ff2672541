/**
 * A port of this machine that leads to a port inside a sandbox. The server opens it where it can, because bytes then need not pass
 * through this process; else, or when the server has gone, this process listens and brings the bytes to the server.
 */
import { createServer, type Socket } from "node:net";
import { listenLocally } from "../../base/wire/loopback.ts";
import { VivError, type ErrorBody } from "../../base/schema/errors.ts";
import type { PortMessage, TunnelMessage } from "../../base/schema/streams.ts";
import type { Client } from "./client.ts";
import { settlable } from "./settlable.ts";
import type { Channel } from "./transport.ts";

interface PortInside {
  readonly sandbox: string;
  readonly port: number;
}

export interface OpenedPort {
  /** On 127.0.0.1. */
  readonly port: number;
  /** Ends its connections, too. Resolves when it listens no more. */
  close(): Promise<void>;
}

/** A server that does not answer by then has gone, or stands still: it closes the port when it finds the connection ended. */
const CLOSE_MS = 2_000;
const END: TunnelMessage = { type: "end" };

type OnFailure = (error: VivError) => void;

/** `local` 0 takes any free port. */
export async function openPort(client: Client, inside: PortInside, local: number, onFailure: OnFailure): Promise<OpenedPort> {
  const channel = await askServer(client, inside, local);
  if (channel === undefined) return openHere(client, inside, local, onFailure);
  const listening = settlable<number>();
  let here: OpenedPort | undefined;
  let isClosed = false;
  const over = settlable<void>();
  channel.listen({
    message: (data) => {
      const said = JSON.parse(String(data)) as PortMessage;
      if (said.type === "listening") listening.resolve(said.local);
      else onFailure(VivError.fromBody({ error: said.error } as ErrorBody));
    },
    close: () => {
      over.resolve();
      listening.reject(new VivError("server_unreachable", "The server has gone."));
      if (isClosed) return;
      void listening.promise
        .then(async (port) => {
          here = await openHere(client, inside, port, onFailure);
          if (isClosed) await here.close();
        })
        .catch((error: unknown) => onFailure(VivError.from(error)));
    },
  });
  return {
    port: await listening.promise,
    close: async () => {
      isClosed = true;
      if (channel.isOpen) void channel.send(JSON.stringify(END)).catch(() => undefined);
      else over.resolve();
      const late = setTimeout(() => over.resolve(), CLOSE_MS);
      await over.promise;
      clearTimeout(late);
      channel.close();
      await here?.close();
    },
  };
}

/** Undefined where the server can't: it is another machine's, of another version, or has another loopback. */
async function askServer(client: Client, { sandbox, port }: PortInside, local: number): Promise<Channel | undefined> {
  try {
    return await client.openPort(sandbox, port, local);
  } catch (error) {
    if (error instanceof VivError && error.code === "unsupported") return undefined;
    throw error;
  }
}

async function openHere(client: Client, inside: PortInside, local: number, onFailure: OnFailure): Promise<OpenedPort> {
  const open = new Set<Socket>();
  const listener = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) => {
    open.add(socket);
    socket.once("close", () => open.delete(socket));
    void tunnel(client, inside, socket, onFailure);
  });
  const port = await listenLocally(listener, local);
  const close = async (): Promise<void> => {
    listener.close();
    for (const socket of open) socket.destroy();
  };
  return { port, close };
}

async function tunnel(client: Client, { sandbox, port }: PortInside, local: Socket, onFailure: (error: VivError) => void): Promise<void> {
  local.on("error", () => local.destroy());
  try {
    const inside = await client.dial(sandbox, port);
    inside.on("error", () => local.destroy());
    local.on("close", () => inside.destroy());
    inside.on("close", () => local.destroy());
    local.pipe(inside).pipe(local);
    local.resume();
  } catch (error) {
    onFailure(VivError.from(error));
    local.destroy();
  }
}
