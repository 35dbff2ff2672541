/** What every route of the app gets. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { TcpAccess } from "./guard.ts";

export interface AppEnv {
  Bindings: {
    incoming: IncomingMessage;
    outgoing: ServerResponse;
    /** Aborts when the server stops. */
    closing: AbortSignal;
    /** What the door that the request came by asks for; undefined for the Unix socket. */
    access: TcpAccess | undefined;
  };
}

/** Paths of contracts in the router's spelling. */
export function routerPath(path: string): string {
  return path.replaceAll(/\{(\w+)\}/g, ":$1");
}
