/** Answers as JSON, over Node's own response. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { ERRORS, type VivError } from "../../base/schema/errors.ts";

/** What a caller may still send of a body that was refused; then its connection ends. */
const DRAIN_MS = 500;

export function sendJson(outgoing: ServerResponse, status: number, body: string): void {
  if (outgoing.destroyed) return;
  outgoing.writeHead(status, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
    "cache-control": "no-store",
  });
  outgoing.end(body);
}

export function sendError(incoming: IncomingMessage, outgoing: ServerResponse, error: VivError): void {
  if (outgoing.headersSent) return void outgoing.destroy();
  sendJson(outgoing, ERRORS[error.code].status, JSON.stringify(error.toBody()));
  if (!incoming.readableEnded) drain(incoming);
}

/** Closed at once, with bytes that wait to be read, the connection would end for the caller before it has the answer. */
function drain(incoming: IncomingMessage): void {
  const end = setTimeout(() => incoming.socket.destroySoon(), DRAIN_MS).unref();
  incoming.once("close", () => clearTimeout(end));
  incoming.resume();
}
