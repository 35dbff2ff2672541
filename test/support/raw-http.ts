/** Requests as an attacker writes them, byte for byte. */
import { connect, Socket } from "node:net";

export interface RawAnswer {
  readonly status: number;
  readonly head: string;
  readonly body: string;
}

type Where = { path: string } | { host: string; port: number };

/** Sends bytes, also through a connection that was made before, and reads until the other side closes. */
export async function rawRequest(where: Where | Socket, text: string | Buffer): Promise<RawAnswer> {
  const socket = where instanceof Socket ? where : connect(where as { path: string });
  const chunks: Buffer[] = [];
  socket.on("data", (chunk) => chunks.push(chunk));
  // A server that refuses early resets the rest of what is sent; what it said before counts.
  socket.on("error", () => undefined);
  socket.write(text);
  await new Promise((resolve) => socket.once("close", resolve));
  const answer = Buffer.concat(chunks).toString("utf8");
  const split = answer.indexOf("\r\n\r\n");
  return {
    status: Number(answer.slice(9, 12)),
    head: answer.slice(0, split).toLowerCase(),
    body: unchunked(answer.slice(0, split), answer.slice(split + 4)),
  };
}

function unchunked(head: string, body: string): string {
  if (!/transfer-encoding: chunked/i.test(head)) return body;
  return body.replaceAll(/(?:^|\r\n)[0-9a-f]+\r\n/gi, "").replace(/\r\n$/, "");
}

/** A request from its first line, its headers and its body. */
export function request(line: string, headers: Readonly<Record<string, string>>, body = ""): string {
  const all = {
    ...headers,
    connection: headers["connection"] ?? "close",
    ...(body === "" ? {} : { "content-length": String(Buffer.byteLength(body)) }),
  };
  const text = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${line} HTTP/1.1\r\n${text.join("")}\r\n${body}`;
}
