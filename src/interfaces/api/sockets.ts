/** WebSocket routes: commands and tunnels. */
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { WebSocketServer, type WebSocket } from "ws";
import type { Streams } from "../operations/operations.ts";
import type { DesktopHolder } from "../../base/schema/desktop.ts";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import { pathFields } from "../../base/schema/path-template.ts";
import { SOCKET_PROTOCOL } from "../../base/schema/routes.ts";
import { STREAM_ROUTES, type SocketName, type StreamParsedOf } from "../../base/schema/stream-routes.ts";
import type { ScreenMessage } from "../../base/schema/streams.ts";
import { join, SocketStream } from "../../base/wire/wire.ts";
import { converse } from "./command-socket.ts";
import { pathOf } from "./guard.ts";
import { merge, parse, readQuery } from "./input.ts";
import { openLocalPort } from "./local-ports.ts";

function decodedParts(path: string): string[] {
  try {
    return path.split("/").slice(1).map(decodeURIComponent);
  } catch (error) {
    throw new VivError("invalid_input", "The path of the request is not UTF-8.", { cause: error });
  }
}

async function joinTunnel(inside: Duplex, toSocket: Switch): Promise<void> {
  inside.on("error", () => inside.destroy());
  try {
    join(new SocketStream(await toSocket()), inside);
  } catch (error) {
    inside.destroy();
    throw error;
  }
}

/** Says to a viewer who has keys and pointer. */
class HolderMessages {
  #socket: WebSocket | undefined;
  #holder: DesktopHolder | undefined;

  tell(holder: DesktopHolder): void {
    this.#holder = holder;
    const message: ScreenMessage = { type: "control", holder };
    if (this.#socket?.readyState === this.#socket?.OPEN) this.#socket?.send(JSON.stringify(message));
  }

  /** What was told before there was a connection is sent now. */
  sendTo(socket: WebSocket): WebSocket {
    this.#socket = socket;
    if (this.#holder !== undefined) this.tell(this.#holder);
    return socket;
  }
}

/** Answers the request with a WebSocket. */
type Switch = () => Promise<WebSocket>;
/** What opens each stream. One that rejects before it switches is answered with the error. */
type Openers = { readonly [Name in SocketName]: (input: StreamParsedOf<Name>, toSocket: Switch, isOwner: boolean) => Promise<void> };

export class Sockets {
  readonly #openers: Openers;
  readonly #server = new WebSocketServer({
    noServer: true,
    maxPayload: LIMITS.maxBodyBytes,
    perMessageDeflate: false,
    clientTracking: true,
    // Never echoes the protocol that carries the token.
    handleProtocols: (protocols) => (protocols.has(SOCKET_PROTOCOL) ? SOCKET_PROTOCOL : false),
  });

  constructor(streams: Streams, closing: AbortSignal) {
    this.#openers = {
      exec: async ({ sandbox }, toSocket) =>
        converse(await toSocket(), async (inbox) => streams.exec(sandbox, await inbox.opening()), closing),
      attach: async ({ sandbox, command, stdin }, toSocket) =>
        converse(await toSocket(), () => streams.attach(sandbox, command, stdin ?? false), closing),
      desktop: async ({ sandbox, control }, toSocket) => {
        const holder = new HolderMessages();
        const inside = await streams.desktop(sandbox, control, (now) => holder.tell(now));
        await joinTunnel(inside, async () => holder.sendTo(await toSocket()));
      },
      tunnel: async ({ sandbox, port }, toSocket) => joinTunnel(await streams.dial(sandbox, port), toSocket),
      openPort: async (wanted, toSocket, isOwner) => {
        if (!isOwner) throw new VivError("unsupported", "Only a caller on the server's Unix socket sees ports that it opens.");
        await openLocalPort(streams, wanted, toSocket);
      },
    };
  }

  /** Rejects when the request names no WebSocket route, or before it was switched. The owner is who came by the Unix socket. */
  async upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, isOwner: boolean): Promise<void> {
    const parts = decodedParts(pathOf(request));
    for (const name of Object.keys(this.#openers) as SocketName[]) {
      const fields = pathFields(STREAM_ROUTES[name].path, parts);
      if (fields === undefined) continue;
      return this.#open(name, merge(fields, readQuery(request.url ?? "")), () => this.#switch(request, socket, head), isOwner);
    }
    throw new VivError("not_found", "There is no such WebSocket route.", { remedy: "See /docs for the routes there are." });
  }

  #open<Name extends SocketName>(name: Name, fields: object, toSocket: Switch, isOwner: boolean): Promise<void> {
    return this.#openers[name](parse(STREAM_ROUTES[name].input, fields) as StreamParsedOf<Name>, toSocket, isOwner);
  }

  #switch(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<WebSocket> {
    return new Promise((resolve, reject) => {
      // A handshake that ws refuses is answered and closed by it.
      socket.once("close", () => reject(new VivError("cancelled", "The caller went away.")));
      this.#server.handleUpgrade(request, socket, head, (opened) => {
        opened.on("error", () => opened.terminate());
        // Until its listeners are there, what the caller sent along waits.
        opened.pause();
        resolve(opened);
      });
    });
  }

  /** Says goodbye to everyone. */
  close(): void {
    for (const socket of this.#server.clients) {
      socket.resume();
      socket.close(1001);
    }
  }

  terminate(): void {
    for (const socket of this.#server.clients) socket.terminate();
  }
}
