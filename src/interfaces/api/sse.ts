/** Server-sent events from an async iterable, read only as fast as the client takes them. */
import { VivError } from "../../base/schema/errors.ts";

const KEEP_ALIVE_MS = 15_000;

export interface Message {
  readonly id?: number;
  readonly data: unknown;
}

function frame(message: Message): string {
  const id = message.id === undefined ? "" : `id: ${message.id}\n`;
  return `${id}data: ${JSON.stringify(message.data)}\n\n`;
}

export function sseResponse(messages: AsyncIterable<Message>, stop: () => void): Response {
  const encoder = new TextEncoder();
  const iterator = messages[Symbol.asyncIterator]();
  let keepAlive: NodeJS.Timeout | undefined;
  const finish = (): void => {
    clearInterval(keepAlive);
    stop();
  };
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        controller.enqueue(encoder.encode(": open\n\n"));
        keepAlive = setInterval(() => {
          if ((controller.desiredSize ?? 0) > 0) controller.enqueue(encoder.encode(": still here\n\n"));
        }, KEEP_ALIVE_MS);
        keepAlive.unref();
      },
      async pull(controller) {
        try {
          const next = await iterator.next();
          if (next.done !== true) return controller.enqueue(encoder.encode(frame(next.value)));
        } catch (error) {
          controller.enqueue(encoder.encode(`event: error\ndata: ${JSON.stringify(VivError.from(error).toBody())}\n\n`));
        }
        finish();
        controller.close();
      },
      cancel: finish,
    },
    { highWaterMark: 1 },
  );
  return new Response(body, {
    headers: { "content-type": "text/event-stream", "cache-control": "no-store", "x-content-type-options": "nosniff" },
  });
}
