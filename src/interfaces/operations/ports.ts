/** Connections to ports inside. */
import type { Duplex } from "node:stream";
import type { Mover } from "../../base/host/mover.ts";
import { join } from "../../base/wire/wire.ts";
import type { Sandboxes } from "../../sandbox/sandboxes.ts";
import type { Parts } from "../../sandbox/shared/parts.ts";
import { requireLive } from "../../sandbox/shared/state.ts";
import type { LedConnection, Streams } from "./operations.ts";

interface PortParts {
  readonly sandboxes: Sandboxes;
  readonly parts: Parts;
  readonly mover: Mover;
}

export function portStreams(engine: PortParts): Pick<Streams, "dial" | "lead"> {
  return {
    dial: (sandbox, port) => dial(engine, sandbox, port),
    lead: async (sandbox, port, local) => {
      const inside = await dial(engine, sandbox, port);
      inside.on("error", () => inside.destroy());
      try {
        return (await engine.mover.join(inside, local)) ?? piped(inside, local);
      } catch (error) {
        inside.destroy();
        throw error;
      }
    },
  };
}

async function dial({ sandboxes, parts }: PortParts, sandbox: string, port: number): Promise<Duplex> {
  const row = await sandboxes.find(sandbox);
  requireLive(row);
  const live = parts.live.require(row);
  const leave = live.uses.begin(`connection to port ${port}`);
  try {
    const socket = await live.walls.dial(port);
    socket.once("close", leave);
    if (socket.closed) leave();
    return socket;
  } catch (error) {
    leave();
    throw error;
  }
}

/** On a machine without a cell, the server moves the bytes itself. */
function piped(inside: Duplex, local: Duplex): LedConnection {
  join(inside, local);
  local.resume();
  return { ended: new Promise((resolve) => local.once("close", resolve)), cut: () => void local.destroy() };
}
