/** SOCKS5 (RFC 1928): CONNECT alone, without a login. The rules are those of every other way. */
import type { Socket } from "node:net";
import { LIMITS } from "../../base/schema/limits.ts";
import { parseHost } from "./host.ts";
import type { DenialCode } from "./rules.ts";
import { firstBytes } from "./streams.ts";

export interface SocksRequest {
  readonly host: string;
  readonly port: number;
  readonly head: Buffer;
}

const VERSION = 5;
const NO_LOGIN = 0;
const NONE_FITS = 0xff;
const CONNECT = 1;
const REPLY = { ok: 0, failed: 1, notAllowed: 2, hostUnreachable: 4, noCommand: 7, noAddress: 8 } as const;
type Reply = (typeof REPLY)[keyof typeof REPLY];

export function socksReply(code: Reply): Buffer {
  return Buffer.of(VERSION, code, 0, 1, 0, 0, 0, 0, 0, 0);
}

export const SOCKS_OK = socksReply(REPLY.ok);

export function socksRefusal(code: DenialCode): Buffer {
  return socksReply(code === "not_resolved" || code === "unreachable" ? REPLY.hostUnreachable : REPLY.notAllowed);
}

/** The request of a client, or the answer that ends it. */
export async function readSocks(client: Socket, start: Buffer): Promise<SocksRequest | Buffer | undefined> {
  const greeting = await firstBytes(client, start, (data) => data.length >= 2 && data.length >= 2 + (data[1] ?? 0), LIMITS.egressHeadMs);
  if (greeting === undefined) return undefined;
  const methods = greeting.subarray(2, 2 + (greeting[1] ?? 0));
  if (!methods.includes(NO_LOGIN)) return Buffer.of(VERSION, NONE_FITS);
  client.write(Buffer.of(VERSION, NO_LOGIN));
  const rest = greeting.subarray(2 + methods.length);
  const data = await firstBytes(client, rest, (got) => got.length >= requestLength(got), LIMITS.egressHeadMs);
  return data === undefined ? undefined : parse(data);
}

/** Bytes of a request as far as it is known; at least one more than there are while it is not. */
function requestLength(data: Buffer): number {
  if (data.length < 5) return 5;
  if (data[3] === 1) return 4 + 4 + 2;
  if (data[3] === 4) return 4 + 16 + 2;
  return data[3] === 3 ? 4 + 1 + (data[4] ?? 0) + 2 : 5;
}

function parse(data: Buffer): SocksRequest | Buffer {
  if (data[0] !== VERSION || data[2] !== 0) return socksReply(REPLY.failed);
  if (data[1] !== CONNECT) return socksReply(REPLY.noCommand);
  const text = hostOf(data);
  if (text === undefined) return socksReply(REPLY.noAddress);
  const host = parseHost(text, false);
  const length = requestLength(data);
  const port = data.readUInt16BE(length - 2);
  if (host === undefined || port === 0) return socksReply(REPLY.notAllowed);
  return { host, port, head: data.subarray(length) };
}

function hostOf(data: Buffer): string | undefined {
  if (data[3] === 1) return data.subarray(4, 8).join(".");
  if (data[3] === 3) return data.subarray(5, 5 + (data[4] ?? 0)).toString("latin1");
  if (data[3] !== 4) return undefined;
  return Array.from({ length: 8 }, (_, index) => data.readUInt16BE(4 + 2 * index).toString(16)).join(":");
}
