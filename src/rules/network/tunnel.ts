/** Connections that carry something else: what is in them is looked at once, at the beginning. */
import type { Socket } from "node:net";
import { LIMITS } from "../../base/schema/limits.ts";
import { MAX_HELLO_BYTES } from "./client-hello.ts";
import { contentOf, isHttp, isTold } from "./first-words.ts";
import type { Gate, Protocol } from "./gate.ts";
import { asHost, type Interceptor } from "./interception.ts";
import { join } from "./join.ts";
import type { OutsideConnection } from "./outside.ts";
import type { Allowed, Denied } from "./rules.ts";
import type { Session } from "./session.ts";
import { firstBytes, watchForEnd } from "./streams.ts";

export interface TunnelRequest {
  readonly host: string;
  readonly port: number;
  readonly protocol: Protocol;
  readonly client: Socket;
  /** What came behind the request already. */
  head: Buffer;
  /** Tells the client that it may speak. */
  readonly accept: () => void;
  readonly refuse: (denied: Denied) => void;
}

/** What takes over a client that speaks HTTP to one host: plain, or in TLS that was opened; with what was allowed for the tunnel. */
export interface HttpTaker {
  take(
    session: Session,
    client: Socket,
    head: Buffer,
    only: { host: string; port: number; interceptor?: Interceptor },
    ruling?: Allowed,
  ): void;
}

/** The ruling, and the connection if one was made already. */
interface OpenedTunnel {
  readonly ruling: Allowed;
  readonly outside: OutsideConnection | undefined;
}

const NOTHING = Buffer.alloc(0);

export async function tunnel(gate: Gate, session: Session, request: TunnelRequest, http: HttpTaker): Promise<void> {
  const { client, protocol } = request;
  const gone = new AbortController();
  client.once("close", () => gone.abort());
  if (protocol === "direct" && (await isPlainRequest(gate, session, request))) return http.take(session, client, request.head, request);
  const opened = await decided(gate, session, request, gone);
  if ("verdict" in opened) return request.refuse(opened);
  const { ruling, outside } = opened;
  if (client.destroyed || gone.signal.aborted) {
    client.destroy();
    outside?.socket.destroy();
    return;
  }
  request.accept();
  if (ruling.tcp && outside !== undefined) return join(session, client, outside, request, request.head);
  await inspect(gate, session, request, opened, http);
}

/** A person may be asked. A client that hangs up before the answer must not use the approval. A half-closed connection counts as hung up, unless the host is open to any protocol. */
async function decided(gate: Gate, session: Session, request: TunnelRequest, gone: AbortController): Promise<OpenedTunnel | Denied> {
  const { host, port, client } = request;
  const ruling = gate.ruling(session, host, port);
  const isAny = ruling.verdict === "allow" && ruling.tcp;
  const stop = isAny ? undefined : watchForEnd(client, MAX_HELLO_BYTES, () => gone.abort());
  const opened = await open(gate, session, request, gone.signal);
  if (stop !== undefined) request.head = Buffer.concat([request.head, stop()]);
  return opened;
}

/** Requests in TLS that is opened dial by themselves, each of them. */
async function open(
  gate: Gate,
  session: Session,
  { host, port, protocol }: TunnelRequest,
  signal: AbortSignal,
): Promise<OpenedTunnel | Denied> {
  const question = { host, port, protocol };
  const ruling = await gate.permit(session, question, signal);
  if (ruling.verdict === "deny") return ruling;
  const isDialled = ruling.tcp || gate.interceptor(host, port) === undefined;
  return isDialled ? gate.connect(session, question, ruling, signal) : { ruling, outside: undefined };
}

/**
 * Who dials by name speaks first, unless the host is open to any protocol: a plain request is then decided by itself, and no
 * connection is made for nothing. What was read is kept.
 */
async function isPlainRequest(gate: Gate, session: Session, request: TunnelRequest): Promise<boolean> {
  const ruling = gate.ruling(session, request.host, request.port);
  if (ruling.verdict === "deny" || ruling.tcp) return false;
  request.head = (await firstBytes(request.client, request.head, isTold, LIMITS.egressHeadMs)) ?? request.head;
  return isHttp(request.head);
}

/** TLS under the name that was asked for goes on; plain HTTP is taken apart; the rest ends here. */
async function inspect(
  gate: Gate,
  session: Session,
  request: TunnelRequest,
  { outside, ruling }: OpenedTunnel,
  http: HttpTaker,
): Promise<void> {
  const { host, port, client, protocol } = request;
  // If the client hangs up first, the connection to the host must not stay open.
  const hungUp = (): void => outside?.cut();
  client.once("close", hungUp);
  const began = performance.now();
  const data = await firstBytes(client, request.head, isTold, LIMITS.egressHeadMs);
  if (data === undefined) return void client.destroy();
  // Rules may have changed while the client was silent; what the policy says is looked at as often as for connections that are open.
  const fallen = await gate.fallen(session, host, port, performance.now() - began > LIMITS.egressWatchMs);
  if (fallen !== undefined) {
    await gate.refuse(session, { host, port, protocol }, fallen);
    client.destroy();
    return;
  }
  const content = contentOf(data, request);
  if (content === "tls") {
    const interceptor = gate.interceptor(host, port);
    if (interceptor === undefined && outside !== undefined) {
      client.removeListener("close", hungUp);
      return join(session, client, outside, request, data);
    }
    outside?.socket.destroy();
    // Its secret was removed a moment ago: the next connection goes through as it is.
    if (interceptor === undefined) return void client.destroy();
    const credentials = await interceptor.credentials(host);
    return http.take(session, asHost(client, data, credentials), NOTHING, { host, port, interceptor }, ruling);
  }
  outside?.socket.destroy();
  if (content === "http") return http.take(session, client, data, { host, port }, ruling);
  await gate.refuse(session, { host, port, protocol }, content);
  client.destroy();
}
