/** Ports of this machine that the server opens for callers of this machine: the mover then brings their bytes, and no JavaScript touches them. */
import { createServer, type Socket } from "node:net";
import type { WebSocket } from "ws";
import { listenLocally, networkNamespace } from "../../base/wire/loopback.ts";
import { VivError } from "../../base/schema/errors.ts";
import type { StreamParsedOf } from "../../base/schema/stream-routes.ts";
import type { PortMessage } from "../../base/schema/streams.ts";
import type { Streams } from "../operations/operations.ts";

/** Listens until the caller's connection ends, and with it all that came by the port. */
export async function openLocalPort(
  streams: Pick<Streams, "lead">,
  { sandbox, port, local, namespace }: StreamParsedOf<"openPort">,
  toSocket: () => Promise<WebSocket>,
): Promise<void> {
  const own = networkNamespace();
  if (own === "" || namespace !== own) throw new VivError("unsupported", "The caller has another loopback than the server.");
  const cuts = new Set<() => void>();
  let tell: (message: PortMessage) => void = () => undefined;
  const lead = async (socket: Socket): Promise<void> => {
    const gone = (): void => void socket.destroy();
    cuts.add(gone);
    socket.on("error", gone);
    // Node counts the connections of a listener in the process that gets them, too, if it knows the listener.
    Object.assign(socket, { server: null });
    try {
      const led = await streams.lead(sandbox, port, socket);
      cuts.delete(gone);
      if (!listener.listening) return led.cut();
      const cut = (): void => led.cut();
      cuts.add(cut);
      await led.ended;
      cuts.delete(cut);
    } catch (error) {
      gone();
      cuts.delete(gone);
      tell({ type: "failed", error: VivError.from(error).toBody().error });
    }
  };
  const listener = createServer({ allowHalfOpen: true, pauseOnConnect: true, noDelay: true }, (socket) => void lead(socket));
  const opened = await listenLocally(listener, local);
  const close = (): void => {
    listener.close();
    for (const cut of cuts) cut();
  };
  try {
    const caller = await toSocket();
    caller.once("close", close);
    // Once the caller hears of the end, no connection comes any more.
    caller.on("message", () => {
      close();
      caller.close();
    });
    tell = (message) => void (caller.readyState === caller.OPEN && caller.send(JSON.stringify(message)));
    caller.resume();
    tell({ type: "listening", local: opened });
    if (caller.readyState !== caller.OPEN) close();
  } catch (error) {
    close();
    throw error;
  }
}
