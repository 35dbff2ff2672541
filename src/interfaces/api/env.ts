/** What every route of the app gets. */
import type { IncomingMessage, ServerResponse } from "node:http";

export interface AppEnv {
  Bindings: {
    incoming: IncomingMessage;
    outgoing: ServerResponse;
    /** Aborts when the server stops. */
    closing: AbortSignal;
    /** Port that the request came to; undefined for the Unix socket. */
    port: number | undefined;
  };
}

/** Paths of contracts in the router's spelling. */
export function routerPath(path: string): string {
  return path.replaceAll(/\{(\w+)\}/g, ":$1");
}
