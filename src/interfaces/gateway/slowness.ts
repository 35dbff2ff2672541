/**
 * How long a client may take for the head of a request, and for the rest of it. Node has such limits, but looks after them by a timer for
 * each server that never rests: with a thousand sandboxes it would wake two hundred times a second for doors that no one uses.
 */
import type { Server } from "node:http";
import type { Duplex } from "node:stream";
import { LIMITS } from "../../base/schema/limits.ts";

const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** For Node's server: its own limits are off. */
export const PATIENCE_OF_OUR_OWN = { headersTimeout: 0, requestTimeout: 0, connectionsCheckingInterval: LONGEST_TIMER_MS } as const;

interface Client {
  timer?: NodeJS.Timeout;
  /** Requests whose answer has not ended; several if they were sent without waiting for answers. */
  unanswered: number;
}

export function limitSlowness(server: Server, headMs: number = LIMITS.gatewayHeadMs, requestMs: number = LIMITS.gatewayRequestMs): void {
  const clients = new WeakMap<Duplex, Client>();
  const allow = (socket: Duplex, client: Client, ms: number, isWhole = (): boolean => false): void => {
    clearTimeout(client.timer);
    if (!socket.destroyed) client.timer = setTimeout(() => !isWhole() && socket.destroy(), ms).unref();
  };
  server.on("connection", (socket) => {
    const client: Client = { unanswered: 0 };
    clients.set(socket, client);
    allow(socket, client, headMs);
    socket.once("close", () => clearTimeout(client.timer));
  });
  server.on("request", (request, response) => {
    const { socket } = request;
    const client = clients.get(socket);
    if (client === undefined) return void socket.destroy();
    client.unanswered += 1;
    // Whether it has come, not whether it was read: what answers may wait for a person first.
    allow(socket, client, requestMs, () => request.complete);
    response.once("close", () => {
      client.unanswered -= 1;
      if (client.unanswered === 0) allow(socket, client, headMs);
    });
  });
}
