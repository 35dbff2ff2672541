/** One request to the outside and its answer, both written anew: what was decided on is what is sent. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { Transform, type Readable } from "node:stream";
import { LIMITS } from "../../base/schema/limits.ts";
import type { ChunkReceiver } from "./outside.ts";
import { ResponseReader } from "./response.ts";
import { Scrubber } from "./scrubber.ts";

/** A connection to the outside, plain or with TLS of our own. */
export interface OutsideStream {
  readonly socket: Socket;
  take(taker: ChunkReceiver): void;
  /** Reads no more. */
  stop?(): void;
}

export interface Exchange {
  readonly way: OutsideStream;
  /** As `requestHead` makes it. */
  readonly head: string;
  readonly body: Readable;
  /** Texts that the answer does not bring inside. */
  readonly hidden: readonly string[];
  /** Brings so many bytes inside without the server, once it reads no more; undefined where the server must see them. */
  readonly move?: ((bytes: number) => Promise<boolean>) | undefined;
  /** The host ended the connection before it answered. */
  readonly unanswered: () => void;
}

/** Headers that are between two neighbours (RFC 9110, 7.6.1), and what is for the proxy alone. */
const HOP = new Set([
  "connection",
  "proxy-connection",
  "keep-alive",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "http2-settings",
  "expect",
  "proxy-authorization",
  "proxy-authenticate",
]);

export function exchange(request: IncomingMessage, response: ServerResponse, { way, unanswered, move, ...sent }: Exchange): void {
  const { socket } = way;
  const scrubber = new Scrubber(sent.hidden);
  let body: Scrubber | undefined;
  const broken = (): void => {
    socket.destroy();
    if (response.headersSent) response.destroy();
    else if (!response.destroyed) unanswered();
  };
  const reader = new ResponseReader(
    {
      head: ({ status, phrase, headers }) => {
        response.sendDate = false;
        // Also in what says that it is packed: that is the host's word, and perhaps the client's wish.
        if (scrubber.looks) body = scrubber;
        response.writeHead(
          status,
          scrubber.text(phrase),
          endToEnd(headers).map((text) => scrubber.text(text)),
        );
      },
      body: (chunk, done) => {
        const shown = body === undefined ? chunk : body.add(chunk);
        if (shown.length === 0) done();
        else response.write(shown, done);
      },
      end: () => {
        response.end(body?.end());
        socket.destroy();
      },
      broken,
    },
    { headRequest: request.method === "HEAD", maxHeadBytes: LIMITS.egressHeadBytes },
  );
  let isMoved = false;
  way.take((chunk, done) => {
    let written = false;
    let next = (): void => undefined;
    reader.take(chunk, () => {
      written = true;
      done();
      next();
    });
    const { left } = reader;
    if (move === undefined || scrubber.looks || left < LIMITS.egressMovedBytes) return;
    way.stop?.();
    isMoved = true;
    next = () =>
      void move(left).then((isWhole) => {
        if (isWhole) reader.passedBy();
        else broken();
      });
    // What came with the head is inside before the rest follows it.
    if (written) next();
  });
  socket.once("end", () => reader.ended());
  socket.once("close", () => !isMoved && !response.writableEnded && broken());
  request.once("aborted", () => socket.destroy());
  send(request, socket, sent);
}

/** A request as it was decided on, up to its body. Headers are end to end; names and values in turn. */
export function requestHead(
  { method, path, isChunked: chunked }: { readonly method: string; readonly path: string; readonly isChunked: boolean },
  headers: readonly string[],
): string {
  const framing = chunked ? ["Transfer-Encoding", "chunked"] : [];
  return `${method} ${path} HTTP/1.1\r\n${headerLines([...headers, ...framing, "Connection", "close"])}\r\n`;
}

export function headerLines(raw: readonly string[]): string {
  return headerPairs(raw)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join("");
}

export function isChunked({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] !== undefined;
}

/** The head, and the body in the framing it came with. */
function send(request: IncomingMessage, socket: Socket, { head, body }: Pick<Exchange, "head" | "body">): void {
  socket.write(head, "latin1");
  if (!isChunked(request))
    return void (request.headers["content-length"] === undefined ? body.resume() : body.pipe(socket, { end: false }));
  const framed = new Transform({
    transform(chunk: Buffer, _, done) {
      this.push(`${chunk.length.toString(16)}\r\n`);
      this.push(chunk);
      done(null, "\r\n");
    },
    flush: (done) => done(null, "0\r\n\r\n"),
  });
  body.pipe(framed).pipe(socket, { end: false });
}

function headerPairs(raw: readonly string[]): [name: string, value: string][] {
  return Array.from({ length: raw.length / 2 }, (_, index) => [raw[2 * index] ?? "", raw[2 * index + 1] ?? ""]);
}

/** Without what the two neighbours agree on between themselves. */
export function endToEnd(raw: readonly string[]): string[] {
  const pairs = headerPairs(raw);
  const named = new Set(
    pairs.flatMap(([name, value]) =>
      name.toLowerCase() === "connection" ? value.split(",").map((word) => word.trim().toLowerCase()) : [],
    ),
  );
  // Named by the sender, these would vanish: the length of a message is not theirs to hide.
  for (const kept of ["content-length", "host"]) named.delete(kept);
  return pairs.filter(([name]) => !HOP.has(name.toLowerCase()) && !named.has(name.toLowerCase())).flat();
}
