/** A tunnel that was decided on: the mover gets both sides, once what the server has read of either is written to the other. */
import type { Socket } from "node:net";
import { written } from "../../base/host/moved-connection.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { OutsideConnection } from "./outside.ts";
import type { Session } from "./session.ts";

/** Joins two sides until both directions have ended; one that breaks takes the other with it. */
export async function join(
  session: Session,
  inside: Socket,
  outside: OutsideConnection,
  at: { host: string; port: number },
  first: Buffer,
): Promise<void> {
  const cut = (): void => {
    inside.destroy();
    outside.cut();
    session.movedOf(inside)?.drop();
  };
  session.begin({ ...at, outside, cut });
  for (const side of [inside, outside.socket]) side.setTimeout(LIMITS.egressIdleMs, cut);
  inside.on("error", cut);
  try {
    await handOver(session, inside, outside, first);
  } catch {
    // One side broke while the other was written to.
    cut();
  }
}

async function handOver(session: Session, inside: Socket, outside: OutsideConnection, first: Buffer): Promise<void> {
  const moved = session.movedOf(inside);
  await written(inside, outside.stop());
  if (moved === undefined || inside.destroyed || outside.socket.destroyed) throw new Error("gone");
  inside.pause();
  const read = (inside.read() as Buffer | null) ?? Buffer.alloc(0);
  // In the same turn of the event loop as the last read: what comes from now on is the mover's.
  inside.setTimeout(0);
  moved.take();
  await written(outside.socket, Buffer.concat([first, read]));
  if (outside.socket.destroyed) throw new Error("gone");
  outside.give((socket) => moved.join(socket));
}
