/**
 * Server-sent events from an async iterable, read only as fast as the client takes them.
 *
 * They are written by hand: the adapter joins each read of a body to the one before it by a promise, and holds all of them
 * until the body ends. A stream that is open for a day would never give that memory back.
 */
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { VivError } from "../../base/schema/errors.ts";

const KEEP_ALIVE_MS = 15_000;
const HEADERS = { "content-type": "text/event-stream", "cache-control": "no-store", "x-content-type-options": "nosniff" };

export interface Message {
  readonly id?: number;
  readonly data: unknown;
}

function frame(message: Message): string {
  const id = message.id === undefined ? "" : `id: ${message.id}\n`;
  return `${id}data: ${JSON.stringify(message.data)}\n\n`;
}

async function write(outgoing: ServerResponse, messages: AsyncIterable<Message>, gone: AbortSignal): Promise<void> {
  try {
    for await (const message of messages) {
      if (gone.aborted) return;
      if (!outgoing.write(frame(message))) await once(outgoing, "drain", { signal: gone });
    }
  } catch (error) {
    if (!gone.aborted) outgoing.write(`event: error\ndata: ${JSON.stringify(VivError.from(error).toBody())}\n\n`);
  }
}

/** `stop` is aborted when the client goes away, and by this when the messages have ended. */
export function sendMessages(outgoing: ServerResponse, messages: AsyncIterable<Message>, stop: AbortController): Response {
  outgoing.writeHead(200, HEADERS);
  outgoing.write(": open\n\n");
  const keepAlive = setInterval(() => {
    if (outgoing.writableLength === 0) outgoing.write(": still here\n\n");
  }, KEEP_ALIVE_MS).unref();
  void write(outgoing, messages, stop.signal).finally(() => {
    clearInterval(keepAlive);
    stop.abort();
    outgoing.end();
  });
  return RESPONSE_ALREADY_SENT;
}
