/**
 * TLS that is opened because a secret belongs to the host: the client speaks with a certificate of our own, and what it says is
 * treated like plain HTTP, request by request. The host is verified as ever, before it gets a byte.
 */
import type { Socket } from "node:net";
import { connect, createSecureContext, TLSSocket } from "node:tls";
import { LIMITS } from "../../base/schema/limits.ts";
import type { OutsideStream } from "./exchange.ts";
import type { Denied } from "./rules.ts";

export interface InterceptedRequest {
  readonly protocol: "https";
  readonly host: string;
  readonly port: number;
  readonly method: string;
  /** Without the query. */
  readonly path: string;
}

export interface HeadersWithSecrets {
  readonly headers: readonly string[];
  /** Texts that must not come back. */
  readonly hidden: readonly string[];
  /** Names of the secrets that are in the headers now. */
  readonly used: readonly string[];
}

interface Credentials {
  readonly key: string;
  readonly cert: string;
}

export interface Interceptor {
  /** Whether a secret is put into requests to this host and port. */
  wants(host: string, port: number): boolean;
  /** A key and a certificate for this host, from an authority that programs inside trust. */
  credentials(host: string): Promise<Credentials>;
  /** Nothing if the sandbox may use the secrets that the headers ask for, or why not; a person may be asked. */
  permit(sandbox: string, request: InterceptedRequest, headers: readonly string[], signal: AbortSignal): Promise<Denied | undefined>;
  /** Headers, names and values in turn, with secrets in place of placeholders. */
  fill(request: InterceptedRequest, headers: readonly string[]): HeadersWithSecrets;
  /** Resolves once it is recorded that these secrets are used; what can't be recorded is not sent. */
  record(sandbox: string, request: InterceptedRequest, used: readonly string[]): Promise<void>;
}

/** They would send back what was put in. */
const ECHOING = new Set(["TRACE", "TRACK"]);

export function isEchoing(method: string): boolean {
  return ECHOING.has(method);
}

/** Speaks TLS with a client as the host it asked for; its first bytes were read already. No protocol but HTTP/1.1 is offered. */
export function asHost(client: Socket, first: Buffer, credentials: Credentials): TLSSocket {
  client.unshift(first);
  const secureContext = createSecureContext({ ...credentials, minVersion: "TLSv1.2" });
  const inner = new TLSSocket(client, { isServer: true, secureContext, ALPNProtocols: ["http/1.1"] });
  inner.on("error", () => client.destroy());
  client.once("close", () => inner.destroy());
  return inner;
}

/** TLS on a connection that the gate has made. Resolves when the host has shown that it is who it should be, or to why not. */
export function secure(raw: Socket, host: string): Promise<OutsideStream | string> {
  const { promise, resolve } = Promise.withResolvers<OutsideStream | string>();
  // Whatever the environment of the server says.
  const socket = connect({ socket: raw, servername: host, rejectUnauthorized: true, minVersion: "TLSv1.2", ALPNProtocols: ["http/1.1"] });
  const timer = setTimeout(() => fail("no answer in time"), LIMITS.egressDialMs);
  const fail = (reason: string): void => {
    clearTimeout(timer);
    socket.destroy();
    resolve(reason);
  };
  // The cause alone: messages of TLS may repeat what was sent.
  socket.on("error", (error: NodeJS.ErrnoException) => fail(error.code ?? "the connection broke off"));
  socket.once("close", () => fail("the connection broke off"));
  socket.once("secureConnect", () => {
    clearTimeout(timer);
    resolve(wayOf(socket));
  });
  return promise;
}

function wayOf(socket: TLSSocket): OutsideStream {
  return {
    socket,
    take: (taker) => {
      socket.on("data", (chunk: Buffer) => {
        socket.pause();
        taker(chunk, () => socket.resume());
      });
    },
  };
}
