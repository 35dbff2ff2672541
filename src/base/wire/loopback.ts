/** Ports of this machine's loopback, and which loopback that is. */
import { readlinkSync } from "node:fs";
import type { Server } from "node:net";
import { VivError } from "../schema/errors.ts";

/** Listens on 127.0.0.1 and answers the port; 0 takes any free one. */
export function listenLocally(server: Server, port: number): Promise<number> {
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

/** Two processes with the same answer have the same loopback; empty where that can't be told. */
export function networkNamespace(): string {
  try {
    return readlinkSync("/proc/self/ns/net");
  } catch {
    return "";
  }
}
