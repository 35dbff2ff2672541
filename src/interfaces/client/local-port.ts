/** A port of this machine that leads to a port inside a sandbox. */
import { createServer, type Server, type Socket } from "node:net";
import { VivError } from "../../base/schema/errors.ts";
import type { Client } from "./client.ts";

interface PortInside {
  readonly sandbox: string;
  readonly port: number;
}

export interface OpenedPort {
  /** On 127.0.0.1. */
  readonly port: number;
  /** Ends its connections, too. */
  close(): void;
}

/** `local` 0 takes any free port. */
export async function openPort(
  client: Client,
  inside: PortInside,
  local: number,
  onFailure: (error: VivError) => void,
): Promise<OpenedPort> {
  const open = new Set<Socket>();
  const listener = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) => {
    open.add(socket);
    socket.once("close", () => open.delete(socket));
    void tunnel(client, inside, socket, onFailure);
  });
  const port = await listen(listener, local);
  const close = (): void => {
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

function listen(server: Server, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      const why = error.code === "EADDRINUSE" ? "is taken" : `can't be opened (${error.code ?? error.message})`;
      reject(
        new VivError("busy", `Local port ${port} ${why}.`, { cause: error, remedy: "Choose another local port, or 0 for any free one." }),
      );
    });
    server.listen(port, "127.0.0.1", () => {
      const address = server.address();
      resolve(typeof address === "object" && address !== null ? address.port : port);
    });
  });
}
