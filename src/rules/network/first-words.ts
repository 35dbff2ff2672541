/** What is said first in a tunnel. Everything in it is the sandbox's word. */
import { MAX_HELLO_BYTES, readClientHello } from "./client-hello.ts";
import type { Question } from "./gate.ts";
import { isAddress } from "./host.ts";
import { deny, type Denied } from "./rules.ts";

const HTTP_START = /^[A-Z]{3,16} $/;
const PLAIN_WEB_PORT = 80;
const MOST_WORD = 17;
const HANDSHAKE = 22;

/** Whether enough has come to tell what is spoken. */
export function isTold(data: Buffer): boolean {
  if (data.length > MAX_HELLO_BYTES) return true;
  return readClientHello(data).kind !== "more" && (data[0] === HANDSHAKE || isHttp(data) || data.length >= MOST_WORD);
}

/** TLS under the name that was asked for goes on; plain HTTP is taken apart; the rest ends. */
export function contentOf(data: Buffer, { host, port, protocol }: Pick<Question, "host" | "port" | "protocol">): "tls" | "http" | Denied {
  const hello = readClientHello(data);
  if (hello.kind === "tls") return hello.name?.toLowerCase() === host && !isAddress(host) ? "tls" : wrongName(host, hello.name);
  const isTaken = protocol !== "connect" || port === PLAIN_WEB_PORT;
  return hello.kind === "other" && isTaken && isHttp(data) ? "http" : notTls(host, port);
}

/** A method and a space; a nested CONNECT is none of the requests that are taken apart. */
export function isHttp(data: Buffer): boolean {
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
