/** Which TCP ports of the real machine have a listener, as the kernel tells it. No connection is made. */
import { existsSync, readFileSync } from "node:fs";

const TABLES = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];
const LISTEN = "0A";

export function listeningPorts(): Set<number> {
  return new Set(TABLES.filter((table) => existsSync(table)).flatMap((table) => parseListening(readFileSync(table, "utf8"))));
}

/** `sl local_address rem_address st ...`, addresses as hexadecimal `ADDRESS:PORT`. */
export function parseListening(table: string): number[] {
  return table.split("\n").flatMap((line) => {
    const [, local, , state] = line.trim().split(/\s+/);
    return state === LISTEN && local !== undefined ? [Number.parseInt(local.slice(local.lastIndexOf(":") + 1), 16)] : [];
  });
}
