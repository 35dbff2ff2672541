/** Events and files: routes of the app that stream. */
import { pipeline, Readable } from "node:stream";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import type { Context, Hono } from "hono";
import type { Engine } from "../operations/operations.ts";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import { wholeNumber } from "../../base/schema/numbers.ts";
import { ENTRY_HEADER } from "../../base/schema/routes.ts";
import { STREAM_ROUTES, type StreamName, type StreamParsedOf } from "../../base/schema/stream-routes.ts";
import { chunksOf, merge, parse, readQuery } from "./input.ts";
import { sseResponse, type Message } from "./sse.ts";
import { routerPath, type AppEnv } from "./env.ts";

function inputOf<Name extends StreamName>(name: Name, context: Context<AppEnv>): StreamParsedOf<Name> {
  return parse(STREAM_ROUTES[name].input, merge(context.req.param(), readQuery(context.req.url))) as StreamParsedOf<Name>;
}

/** Aborts when the client has gone or the server stops. */
function streamSignal(context: Context<AppEnv>): AbortController {
  const controller = new AbortController();
  const abort = (): void => controller.abort();
  context.env.outgoing.once("close", abort);
  context.env.closing.addEventListener("abort", abort, { once: true });
  controller.signal.addEventListener("abort", () => context.env.closing.removeEventListener("abort", abort), { once: true });
  if (context.env.closing.aborted) abort();
  return controller;
}

/** Written by hand: the adapter ends a body that fails as if it were whole, with the error's text in it. */
function sendOctets(context: Context<AppEnv>, body: Readable, type: string, headers: Record<string, string> = {}): Response {
  const { outgoing } = context.env;
  outgoing.writeHead(200, {
    "content-type": type,
    "content-disposition": "attachment",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
    ...headers,
  });
  pipeline(body, outgoing, (error) => error && outgoing.destroy());
  return RESPONSE_ALREADY_SENT;
}

function asciiJson(value: unknown): string {
  return JSON.stringify(value).replace(/[\u007f-\uffff]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

async function* limited(body: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, void> {
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > LIMITS.maxUploadBytes) throw new VivError("invalid_input", `The upload is larger than ${LIMITS.maxUploadBytes} bytes.`);
    yield chunk;
  }
}

const withUser = (user: string | undefined): { user?: string } => (user === undefined ? {} : { user });

async function* map<In>(items: AsyncIterable<In>, make: (item: In) => Message): AsyncGenerator<Message, void, void> {
  for await (const item of items) yield make(item);
}

function startingPoint(context: Context<AppEnv>, after: number | undefined): number {
  const last = context.req.header("last-event-id");
  if (last === undefined) return after ?? 0;
  const sequence = wholeNumber(last);
  if (sequence === undefined) throw new VivError("invalid_input", "The Last-Event-ID header is not a sequence number.");
  return sequence;
}

export function addStreamRoutes(app: Hono<AppEnv>, { streams }: Engine): void {
  app.get(STREAM_ROUTES.events.path, async (context) => {
    const { after, sandbox, uses, as } = inputOf("events", context);
    const from = startingPoint(context, after);
    const stop = streamSignal(context);
    const events = await streams.events(from, {
      signal: stop.signal,
      sandbox,
      ...(uses === undefined ? {} : { use: { sandbox: uses, as } }),
    });
    return sseResponse(
      map(events, (event) => ({ id: event.sequence, data: event })),
      () => stop.abort(),
    );
  });
  app.get(routerPath(STREAM_ROUTES.watchFiles.path), async (context) => {
    const { sandbox, path, user, recursive } = inputOf("watchFiles", context);
    const stop = streamSignal(context);
    const changes = await streams.watchFiles(sandbox, path, { ...withUser(user), recursive: recursive ?? false, signal: stop.signal });
    return sseResponse(
      map(changes, (change) => ({ data: change })),
      () => stop.abort(),
    );
  });
  app.get(routerPath(STREAM_ROUTES.readFile.path), async (context) => {
    const { sandbox, path, user } = inputOf("readFile", context);
    const { entry, body } = await streams.readFile(sandbox, path, user);
    return sendOctets(context, body, "application/octet-stream", { [ENTRY_HEADER]: asciiJson(entry) });
  });
  app.put(routerPath(STREAM_ROUTES.writeFile.path), async (context) => {
    const { sandbox, path, user, mode, parents } = inputOf("writeFile", context);
    const options = { ...withUser(user), ...(mode === undefined ? {} : { mode }), ...(parents === undefined ? {} : { parents }) };
    return context.json(await streams.writeFile(sandbox, path, limited(chunksOf(context.env.incoming)), options));
  });
  app.get(routerPath(STREAM_ROUTES.patch.path), async (context) => {
    const { sandbox, promotable } = inputOf("patch", context);
    return sendOctets(context, await streams.patch(sandbox, { promotable }), "text/x-diff");
  });
  app.get(routerPath(STREAM_ROUTES.packFiles.path), async (context) => {
    const { sandbox, path, user } = inputOf("packFiles", context);
    return sendOctets(context, await streams.packFiles(sandbox, path, user), "application/x-tar");
  });
  app.put(routerPath(STREAM_ROUTES.unpackFiles.path), async (context) => {
    const { sandbox, path, user } = inputOf("unpackFiles", context);
    return context.json(await streams.unpackFiles(sandbox, path, Readable.from(limited(chunksOf(context.env.incoming))), user));
  });
}
