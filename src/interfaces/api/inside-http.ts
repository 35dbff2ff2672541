/** HTTP spoken with a program inside a sandbox, over a connection of its own for each request. What it answers is hostile. */
import {
  request as httpRequest,
  type ClientRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type OutgoingHttpHeaders,
} from "node:http";
import type { Duplex } from "node:stream";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";

/** Headers that are about one connection, and not about the message. */
export const HOP_BY_HOP = [
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "http2-settings",
];

/** What a program inside answered first: an answer, or a switch of protocols. */
export interface FirstAnswer {
  readonly answer: IncomingMessage;
  readonly inside?: Duplex;
  readonly first?: Buffer;
}

/** Headers named by Connection are hop-by-hop, too. */
export function keptHeaders(headers: IncomingHttpHeaders, without: ReadonlySet<string>): OutgoingHttpHeaders {
  const named = new Set((headers.connection ?? "").split(",").map((name) => name.trim().toLowerCase()));
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !without.has(name) && !named.has(name)));
}

/** Subprotocols of the application; those that carry the server's token or a browser's key stay outside. */
export function applicationProtocols(headers: IncomingHttpHeaders): OutgoingHttpHeaders {
  const protocols = (headers["sec-websocket-protocol"] ?? "")
    .split(",")
    .map((text) => text.trim())
    .filter((text) => text !== "" && text !== "viv" && !text.startsWith("viv."));
  return protocols.length === 0 ? {} : { "sec-websocket-protocol": protocols.join(", ") };
}

interface InsideRequest {
  readonly path: string;
  readonly headers: OutgoingHttpHeaders;
  /** Whether it asks for a switch of protocols. */
  readonly switches: boolean;
}

/** Begins a request inside with the method of the one outside; its body, if there is one, follows. */
export function beginInside(connection: Duplex, incoming: IncomingMessage, { path, headers, switches }: InsideRequest): ClientRequest {
  // The request handles errors once it has the connection; until then, this listener does.
  connection.on("error", () => connection.destroy());
  const { upgrade, "transfer-encoding": framing } = incoming.headers;
  const framed = {
    ...headers,
    ...(!switches ? {} : { connection: "Upgrade", upgrade }),
    // Without it, Node would send the body of a GET with no frame, and its bytes would count as another request.
    ...(framing === undefined ? {} : { "transfer-encoding": "chunked" }),
  };
  try {
    const request = httpRequest({
      method: incoming.method,
      path,
      headers: framed,
      setHost: false,
      maxHeaderSize: LIMITS.previewHeadBytes,
      createConnection: () => connection,
    });
    // A dialled connection is paused, so that no bytes are lost before a listener is there.
    request.once("socket", () => connection.resume());
    return request;
  } catch (error) {
    connection.destroy();
    throw error;
  }
}

/** Settles with the first of an answer, a switch or a failure. An impossible status is a failure. */
export function firstAnswer(request: ClientRequest, what: string): Promise<FirstAnswer> {
  return new Promise((resolve, reject) => {
    const fail = (why: string, cause?: Error): void =>
      reject(new VivError("port_unreachable", `${what} gave no answer: ${why}.`, { cause }));
    request.on("error", (error) => fail(error.message, error));
    request.once("close", () => fail("it closed the connection"));
    request.once("upgrade", (answer, inside, first) => resolve({ answer, inside, first }));
    request.once("response", (answer) => {
      const status = answer.statusCode ?? 0;
      if (status >= 200 && status <= 599) return resolve({ answer });
      fail(`it said status ${status}`);
      request.destroy();
    });
  });
}

/** The head of an answer as bytes of HTTP, for a connection that is switched. */
export function headText(answer: IncomingMessage, headers: OutgoingHttpHeaders): string {
  const lines = Object.entries(headers).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).map((one) => `${name}: ${String(one)}`),
  );
  return `HTTP/1.1 ${answer.statusCode ?? 502} ${answer.statusMessage ?? ""}\r\n${lines.join("\r\n")}\r\n\r\n`;
}
