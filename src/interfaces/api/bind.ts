/** Takes a place to listen at: a Unix socket that only its owner reaches, or a port. */
import { chmodSync, lstatSync, mkdirSync, rmSync } from "node:fs";
import type { Server as PlainServer } from "node:http";
import type { Server as TlsServer } from "node:https";
import { connect, type AddressInfo } from "node:net";
import { dirname } from "node:path";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { Door } from "./door.ts";

/** sun_path holds 108 bytes with its NUL. */
const MAX_SOCKET_PATH_BYTES = 107;

export type Server = PlainServer | TlsServer;

async function bind(server: Server, where: { path: string } | { host: string; port: number }): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    // As many may wait to be let in as may be in: with fewer, a crowd that comes at once is turned away.
    server.listen({ ...where, backlog: LIMITS.maxConnections }, () => {
      server.off("error", reject);
      resolve();
    });
  });
}

async function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect(path, () => {
      probe.destroy();
      resolve(true);
    });
    probe.once("error", () => resolve(false));
  });
}

/** The folder keeps others away from the moment the socket exists; its own mode is the second lock. */
export async function bindPrivately(server: Server, path: string): Promise<void> {
  const folder = dirname(path);
  if (Buffer.byteLength(path) > MAX_SOCKET_PATH_BYTES)
    throw new VivError("config_invalid", `The socket's path ${path} is longer than ${MAX_SOCKET_PATH_BYTES} bytes.`, {
      remedy: "Choose a shorter VIV_HOME.",
    });
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const { uid, mode } = lstatSync(folder);
  if (uid !== process.geteuid?.() || (mode & 0o077) !== 0)
    throw new VivError("config_invalid", `The folder ${folder} of the socket is open to others.`, {
      remedy: `Run \`chmod 700 ${folder}\`, or use another VIV_HOME.`,
    });
  if (await answers(path)) throw new VivError("server_running", `Another server listens on ${path}.`);
  rmSync(path, { force: true });
  await bind(server, { path });
  chmodSync(path, 0o600);
}

export async function bindPort(server: Server, { host, port }: Door): Promise<number> {
  try {
    await bind(server, { host, port });
  } catch (error) {
    throw new VivError(
      "config_invalid",
      `Port ${port} of ${host} cannot be had: ${error instanceof Error ? error.message : String(error)}.`,
      { cause: error, remedy: "Choose another port." },
    );
  }
  return portOf(server);
}

export function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}
