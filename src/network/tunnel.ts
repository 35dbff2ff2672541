/** Connections that carry something else: what is in them is looked at once, at the beginning. */
import type { Socket } from "node:net";
import { LIMITS } from "../schema/limits.ts";
import { MAX_HELLO_BYTES, readClientHello } from "./client-hello.ts";
import type { Dialled, Gate, Protocol } from "./gate.ts";
import { isAddress } from "./host.ts";
import { asHost, type Interceptor } from "./interception.ts";
import { deny, type Allowed, type Denied } from "./rules.ts";
import type { Session } from "./session.ts";
import { firstBytes, join, watchForEnd } from "./streams.ts";

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

/** Takes over a client that speaks HTTP to one host: plain, or in TLS that was opened; with what was allowed for the tunnel. */
export type TakeHttp = (
  session: Session,
  client: Socket,
  head: Buffer,
  at: { host: string; port: number; interceptor?: Interceptor },
  ruling?: Allowed,
) => void;

const HTTP_START = /^[A-Z]{3,16} $/;
const PLAIN_WEB_PORT = 80;
const NOTHING = Buffer.alloc(0);

export async function tunnel(gate: Gate, session: Session, request: TunnelRequest, takeHttp: TakeHttp): Promise<void> {
  const { host, port, client, protocol } = request;
  const gone = new AbortController();
  client.once("close", () => gone.abort());
  if (protocol === "direct" && (await isPlainRequest(gate, session, request)))
    return takeHttp(session, client, request.head, { host, port });
  const opened = await decided(gate, session, request, gone);
  if ("verdict" in opened) return request.refuse(opened);
  if (client.destroyed || gone.signal.aborted) {
    client.destroy();
    opened.outside.socket.destroy();
    return;
  }
  request.accept();
  if (opened.ruling.tcp) return join(session, client, opened.outside, request, request.head);
  await inspect(gate, session, request, opened, takeHttp);
}

/** A person may be asked: whoever hangs up before the answer must not use it up. Only where any protocol goes is an end no end yet. */
async function decided(gate: Gate, session: Session, request: TunnelRequest, gone: AbortController): Promise<Dialled | Denied> {
  const { host, port, protocol, client } = request;
  const ruling = gate.ruling(session, host, port);
  const isAny = ruling.verdict === "allow" && ruling.tcp;
  const stop = isAny ? undefined : watchForEnd(client, MAX_HELLO_BYTES, () => gone.abort());
  const opened = await gate.open(session, { host, port, protocol }, gone.signal);
  if (stop !== undefined) request.head = Buffer.concat([request.head, stop()]);
  return opened;
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
  { outside, ruling }: Dialled,
  takeHttp: TakeHttp,
): Promise<void> {
  const { host, port, client, protocol } = request;
  const { socket } = outside;
  // One that hangs up first must not stay open for nobody.
  client.once("close", () => socket.destroy());
  const began = performance.now();
  const data = await firstBytes(client, request.head, isTold, LIMITS.egressHeadMs);
  if (data === undefined) {
    client.destroy();
    socket.destroy();
    return;
  }
  const hello = readClientHello(data);
  // Rules may have changed while the client was silent; what the policy says is looked at as often as for connections that are open.
  const fallen = await gate.fallen(session, host, port, performance.now() - began > LIMITS.egressWatchMs);
  if (fallen !== undefined) {
    await gate.refuse(session, { host, port, protocol }, fallen);
    client.destroy();
    return;
  }
  if (hello.kind === "tls" && hello.name?.toLowerCase() === host && !isAddress(host)) {
    const interceptor = gate.interceptor(host);
    if (interceptor === undefined) return join(session, client, outside, request, data);
    socket.destroy();
    return takeHttp(session, asHost(client, data, interceptor.credentials(host)), NOTHING, { host, port, interceptor }, ruling);
  }
  socket.destroy();
  if (hello.kind === "other" && isHttp(data) && (protocol !== "connect" || port === PLAIN_WEB_PORT))
    return takeHttp(session, client, data, { host, port }, ruling);
  await gate.refuse(session, { host, port, protocol }, hello.kind === "tls" ? wrongName(host, hello.name) : notTls(host, port));
  client.destroy();
}

function isTold(data: Buffer): boolean {
  return data.length > MAX_HELLO_BYTES || (readClientHello(data).kind !== "more" && (data[0] === 22 || isHttp(data) || data.length >= 17));
}

/** A method and a space; a nested CONNECT is none of the requests that are taken apart. */
function isHttp(data: Buffer): boolean {
  const word = data.subarray(0, data.indexOf(" ") + 1).toString("latin1");
  return HTTP_START.test(word) && word !== "CONNECT ";
}

function wrongName(host: string, name: string | undefined): Denied {
  const said = name === undefined ? "no name" : "another name";
  return deny(
    "wrong_tls_name",
    `The TLS connection to ${host} asks for ${said}.`,
    "Ask for the host by its name; a host without TLS names needs `tcp: true` in network.allow.",
  );
}

function notTls(host: string, port: number): Denied {
  return deny(
    "not_tls",
    `What was sent to ${host}:${port} is not TLS.`,
    "A host with another protocol needs `tcp: true` in network.allow.",
  );
}
