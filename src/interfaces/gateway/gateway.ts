/**
 * The gateway: a door to the server inside every walled sandbox. Each has a socket of its own, so the socket says who speaks;
 * nothing that a request claims about its sender counts.
 */
import { existsSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { join } from "node:path";
import { setTimeout as rest } from "node:timers/promises";
import { errorText, type Logger } from "../../base/host/log.ts";
import type { GatewaySockets } from "../../sandbox/shared/parts.ts";
import { VivError } from "../../base/schema/errors.ts";
import { GATEWAY_SOCKET } from "../../base/schema/gateway.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { ModelAnswer } from "../../rules/models/retry-after.ts";
import { limitSlowness, PATIENCE_OF_OUR_OWN } from "./slowness.ts";
import { ToolServer } from "./tool-server.ts";
import { readRequest, refuse, refuseStrangers, send, type Reply, type Request } from "./http.ts";

/** What answers; there once the server has all its parts. */
export interface Routes {
  /** Throws when the sandbox has sent too many requests, whatever they are. */
  admit(sandbox: string): void;
  answer(sandbox: string, request: Request): Promise<Reply>;
  /** The sandbox has ended. */
  forget(sandbox: string): void;
  /** A model API answered the sandbox. */
  modelAnswered(sandbox: string, answer: ModelAnswer): void;
}

/** What passes requests to model APIs on. They are too large and too long for the routes, and speak another language. */
export interface ModelRoutes {
  isFor(address: string): boolean;
  /** Resolves when it is answered. */
  serve(sandbox: string, message: IncomingMessage, response: ServerResponse, onAnswer: (answer: ModelAnswer) => void): Promise<void>;
}

export class Gateway implements GatewaySockets {
  readonly #log: Logger;
  readonly #doors = new Map<string, Server>();
  readonly #routes = Promise.withResolvers<Routes>();
  readonly #models: ModelRoutes;
  #forget: ((sandbox: string) => void) | undefined;

  constructor(log: Logger, models: ModelRoutes) {
    this.#log = log;
    this.#models = models;
  }

  /** Requests that came earlier are answered now. */
  serve(routes: Routes): void {
    this.#forget = (sandbox) => routes.forget(sandbox);
    this.#routes.resolve(routes);
  }

  /** Binds at once, without a wait; a sandbox that was made ahead has its door already. */
  open(sandbox: string, folder: string): void {
    const path = join(folder, GATEWAY_SOCKET);
    if (this.#doors.has(sandbox) && existsSync(path)) return;
    this.close(sandbox);
    const server = createServer(
      {
        maxHeaderSize: LIMITS.gatewayHeadBytes,
        ...PATIENCE_OF_OUR_OWN,
        noDelay: true,
      },
      (request, response) => void this.#serve(sandbox, request, response),
    );
    server.maxConnections = LIMITS.gatewayConnections;
    limitSlowness(server);
    server.on("error", (error) => this.#log.warn("the gateway of a sandbox", { sandbox, error: errorText(error) }));
    server.on("clientError", (_, socket) => {
      if (socket.writable) socket.end("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
      else socket.destroy();
    });
    server.on("upgrade", (_, socket) => socket.destroy());
    // Only a server that was killed leaves one.
    rmSync(path, { force: true });
    // Process 1 is another user; no further user can enter the folders above.
    server.listen({ path, backlog: LIMITS.gatewayConnections, readableAll: true, writableAll: true });
    this.#doors.set(sandbox, server);
  }

  close(sandbox: string): void {
    const server = this.#doors.get(sandbox);
    if (server === undefined) return;
    this.#doors.delete(sandbox);
    server.close();
    server.closeAllConnections();
    this.#forget?.(sandbox);
  }

  closeAll(): void {
    for (const sandbox of this.#doors.keys()) this.close(sandbox);
  }

  async #serve(sandbox: string, message: IncomingMessage, response: ServerResponse): Promise<void> {
    const gone = new AbortController();
    response.on("close", () => gone.abort());
    response.on("error", () => gone.abort());
    try {
      const routes = await this.#routes.promise;
      routes.admit(sandbox);
      refuseStrangers(message);
      if (this.#models.isFor(message.url ?? ""))
        return await this.#models.serve(sandbox, message, response, (answer) => routes.modelAnswered(sandbox, answer));
      const request = await readRequest(message, gone.signal);
      if (ToolServer.isFor(request)) return await new ToolServer(routes).serve(sandbox, request, response);
      send(response, await routes.answer(sandbox, request));
    } catch (error) {
      const known = VivError.from(error);
      // With so many connections and this pause, a flood has an end.
      if (known.code === "rate_limited") await rest(LIMITS.gatewayPauseMs);
      if (known.code === "internal") this.#log.warn("a request of a sandbox", { sandbox, error: errorText(error) });
      refuse(response, known);
    }
  }
}
