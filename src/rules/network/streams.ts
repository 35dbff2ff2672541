/** Small helpers for sockets of the proxy. */
import type { Socket } from "node:net";
import { LIMITS } from "../../base/schema/limits.ts";

/** The first bytes a client sends, until `enough` is content; undefined if it ends, fails or takes too long first. */
export function firstBytes(
  socket: Socket,
  start: Buffer,
  enough: (data: Buffer) => boolean,
  withinMs: number,
): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    let data = start;
    const done = (result: Buffer | undefined): void => {
      clearTimeout(timer);
      socket.removeListener("data", take).removeListener("end", fail).removeListener("close", fail);
      socket.pause();
      resolve(result);
    };
    const fail = (): void => done(undefined);
    const take = (chunk: Buffer): void => {
      data = data.length === 0 ? chunk : Buffer.concat([data, chunk]);
      if (enough(data)) done(data);
    };
    const timer = setTimeout(fail, withinMs);
    if (enough(data)) return done(data);
    socket.on("data", take).once("end", fail).once("close", fail);
    socket.resume();
  });
}

/**
 * Keeps reading while something is decided, so that a client that hangs up is noticed. Gives back what stops it, and tells what came
 * meanwhile.
 */
export function watchForEnd(socket: Socket, mostBytes: number, ended: () => void): () => Buffer {
  const chunks: Buffer[] = [];
  let bytes = 0;
  const take = (chunk: Buffer): void => {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > mostBytes) socket.pause();
  };
  socket.on("data", take).once("end", ended);
  socket.resume();
  return () => {
    socket.removeListener("data", take).removeListener("end", ended);
    socket.pause();
    return Buffer.concat(chunks);
  };
}

/** Ends a connection with a last word. */
export function lastWord(socket: Socket, text: string | Buffer): void {
  socket.on("error", () => socket.destroy());
  socket.end(text);
  // A client that never reads it must not keep the connection.
  socket.setTimeout(LIMITS.egressHeadMs, () => socket.destroy());
  socket.resume();
}
