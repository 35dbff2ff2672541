/** The network between a browser and the server, which a test cuts off or lets fall silent: a SOCKS proxy that passes bytes on. */
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";

const NO_LOGIN = Buffer.from([5, 0]);
const CONNECTED = Buffer.from([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
const [IPV4, NAME] = [1, 3];

/** Host and port of a request to connect, or undefined as long as it is not there to its end. */
function target(request: Buffer): { host: string; port: number } | undefined {
  const kind = request[3];
  const length = kind === IPV4 ? 4 : kind === NAME ? 1 + (request[4] ?? 255) : 16;
  if (request.length < 4 + length + 2) return undefined;
  const address = request.subarray(4, 4 + length);
  const host = kind === NAME ? address.subarray(1).toString() : kind === IPV4 ? address.join(".") : "::1";
  return { host, port: request.readUInt16BE(4 + length) };
}

export class LossyNetwork {
  readonly #server: Server;
  readonly #open = new Set<Socket>();
  #state: "there" | "silent" | "cut" = "there";

  private constructor() {
    this.#server = createServer((socket) => this.#serve(socket));
  }

  static async start(): Promise<LossyNetwork> {
    const network = new LossyNetwork();
    network.#server.listen(0, "127.0.0.1");
    await once(network.#server, "listening");
    return network;
  }

  /** As a browser takes it. */
  get proxy(): { readonly server: string } {
    return { server: `socks5://127.0.0.1:${(this.#server.address() as AddressInfo).port}` };
  }

  /** Connections stay open, and nothing goes through them any more, also later: as after a sleep of the computer. */
  fallSilent(): void {
    this.#state = "silent";
    for (const socket of this.#open) {
      socket.unpipe();
      socket.pause();
    }
  }

  /** All connections break, and there are no new ones. */
  cut(): void {
    this.#state = "cut";
    for (const socket of this.#open) socket.destroy();
  }

  /** New connections work; those that fell silent stay so. */
  comeBack(): void {
    this.#state = "there";
  }

  close(): void {
    this.cut();
    this.#server.close();
  }

  #keep(socket: Socket): void {
    this.#open.add(socket);
    socket.on("error", () => socket.destroy());
    socket.once("close", () => this.#open.delete(socket));
  }

  #serve(socket: Socket): void {
    this.#keep(socket);
    if (this.#state === "cut") return void socket.destroy();
    if (this.#state === "silent") return;
    let heard = Buffer.alloc(0);
    let greeted = false;
    const hear = (chunk: Buffer): void => {
      heard = Buffer.concat([heard, chunk]);
      if (!greeted && heard.length >= 2 && heard.length >= 2 + (heard[1] ?? 0)) {
        greeted = true;
        heard = heard.subarray(2 + (heard[1] ?? 0));
        socket.write(NO_LOGIN);
      }
      const where = greeted ? target(heard) : undefined;
      if (where === undefined) return;
      socket.off("data", hear);
      socket.pause();
      this.#join(socket, where);
    };
    socket.on("data", hear);
  }

  #join(socket: Socket, where: { host: string; port: number }): void {
    const server = connect(where);
    this.#keep(server);
    server.once("connect", () => {
      socket.write(CONNECTED);
      socket.pipe(server);
      server.pipe(socket);
    });
    server.once("close", () => this.#state !== "silent" && socket.destroy());
    socket.once("close", () => this.#state !== "silent" && server.destroy());
  }
}
