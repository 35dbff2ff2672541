/** The client of programs in Node: over the server's Unix socket, or over an address with a token. */
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { ApiClient, streamAddress } from "./api-client.ts";
import { networkNamespace } from "../../base/wire/loopback.ts";
import { NodeTransport, type Address } from "./node-transport.ts";
import type { Channel } from "./transport.ts";

export type { CommandStream } from "./command-stream.ts";

export class Client extends ApiClient<IncomingMessage> {
  readonly #transport: NodeTransport;

  constructor(where: Address) {
    const transport = new NodeTransport(where);
    super(transport);
    this.#transport = transport;
  }

  /** One TCP connection to a port inside. */
  async dial(sandbox: string, port: number): Promise<Duplex> {
    return this.#transport.duplex(streamAddress("tunnel", { sandbox, port }));
  }

  /** A port of this machine that the server itself opens, as long as the channel is open; undefined for a server elsewhere. */
  async openPort(sandbox: string, port: number, local: number): Promise<Channel | undefined> {
    if (!this.#transport.isLocal) return undefined;
    return this.#transport.webSocket(streamAddress("openPort", { sandbox, port, local, namespace: networkNamespace() }));
  }

  /** RFB to the screen of a sandbox; with control, keys and pointer are this connection's until it ends. */
  async desktop(sandbox: string, options: { control?: boolean } = {}): Promise<Duplex> {
    return this.#transport.duplex(streamAddress("desktop", { sandbox, ...options }));
  }
}
