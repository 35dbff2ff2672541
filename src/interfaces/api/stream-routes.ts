/** Events and files: routes of the app that stream. */
import { pipeline, Readable } from "node:stream";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import type { Context, Hono } from "hono";
import type { Engine, Streams } from "../operations/operations.ts";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import { wholeNumber } from "../../base/schema/numbers.ts";
import { ENTRY_HEADER, HOOK_HEADER } from "../../base/schema/routes.ts";
import {
  STREAM_ROUTES,
  type EventStreamName,
  type SocketName,
  type StreamEventOf,
  type StreamName,
  type StreamParsedOf,
} from "../../base/schema/stream-routes.ts";
import { chunksOf, merge, wholeBody, parse, readQuery } from "./input.ts";
import { sendMessages } from "./sse.ts";
import { routerPath, type AppEnv } from "./env.ts";

/** Streams over plain HTTP; the preview of ports is no route of the app. */
type HttpStreamName = Exclude<StreamName, SocketName | "proxy">;
type Handler<Name extends HttpStreamName> = (input: StreamParsedOf<Name>, context: Context<AppEnv>) => Promise<Response>;
type Handlers = { readonly [Name in HttpStreamName]: Handler<Name> };

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

/** The events of a stream as it declares them; `idOf` lets a reader go on from the last one it saw. */
function sendEvents<Name extends EventStreamName>(
  { env: { outgoing } }: Context<AppEnv>,
  events: AsyncIterable<StreamEventOf<Name>>,
  stop: AbortController,
  idOf?: (event: StreamEventOf<Name>) => number,
): Response {
  const messages = async function* () {
    for await (const data of events) yield { data, ...(idOf === undefined ? {} : { id: idOf(data) }) };
  };
  return sendMessages(outgoing, messages(), stop);
}

function startingPoint(context: Context<AppEnv>, after: number | undefined): number {
  const last = context.req.header("last-event-id");
  if (last === undefined) return after ?? 0;
  const sequence = wholeNumber(last);
  if (sequence === undefined) throw new VivError("invalid_input", "The Last-Event-ID header is not a sequence number.");
  return sequence;
}

function handlersOf(streams: Streams): Handlers {
  const body = (context: Context<AppEnv>): AsyncIterable<Buffer> => limited(chunksOf(context.env.incoming));
  return {
    events: async ({ after, sandbox, uses, as }, context) => {
      const from = startingPoint(context, after);
      const stop = streamSignal(context);
      const use = uses === undefined ? {} : { use: { sandbox: uses, as } };
      const events = await streams.events(from, { signal: stop.signal, sandbox, ...use });
      return sendEvents<"events">(context, events, stop, ({ sequence }) => sequence);
    },
    callHook: async ({ automation }, context) => {
      const signature = context.req.header(HOOK_HEADER);
      const called = await wholeBody(context.env.incoming, LIMITS.hookBodyBytes);
      return context.json(STREAM_ROUTES.callHook.output.json.parse({ firing: await streams.callHook(automation, signature, called) }));
    },
    runEvents: async ({ run, after }, context) => {
      const from = startingPoint(context, after);
      const stop = streamSignal(context);
      return sendEvents<"runEvents">(context, await streams.runEvents(run, from, stop.signal), stop, ({ sequence }) => sequence);
    },
    jobOutput: async ({ job }, context) => {
      const stop = streamSignal(context);
      return sendEvents<"jobOutput">(context, await streams.jobOutput(job, stop.signal), stop);
    },
    watchFiles: async ({ sandbox, path, user, recursive }, context) => {
      const stop = streamSignal(context);
      const options = { ...withUser(user), recursive: recursive ?? false, signal: stop.signal };
      return sendEvents<"watchFiles">(context, await streams.watchFiles(sandbox, path, options), stop);
    },
    readFile: async ({ sandbox, path, user }, context) => {
      const { entry, body: content } = await streams.readFile(sandbox, path, user);
      return sendOctets(context, content, STREAM_ROUTES.readFile.output.bytes, { [ENTRY_HEADER]: asciiJson(entry) });
    },
    writeFile: async ({ sandbox, path, user, mode, parents }, context) => {
      const options = { ...withUser(user), ...(mode === undefined ? {} : { mode }), ...(parents === undefined ? {} : { parents }) };
      const entry = await streams.writeFile(sandbox, path, body(context), options);
      return context.json(STREAM_ROUTES.writeFile.output.json.parse(entry));
    },
    executionEvents: async ({ sandbox, execution }, context) => {
      const stop = streamSignal(context);
      return sendEvents<"executionEvents">(context, await streams.executionEvents(sandbox, execution, stop.signal), stop);
    },
    screenshot: async ({ sandbox }, context) =>
      sendOctets(context, Readable.from([await streams.screenshot(sandbox)]), STREAM_ROUTES.screenshot.output.bytes, {
        "content-disposition": "inline",
      }),
    patch: async ({ sandbox, promotable }, context) =>
      sendOctets(context, await streams.patch(sandbox, { promotable }), STREAM_ROUTES.patch.output.bytes),
    packFiles: async ({ sandbox, path, user }, context) =>
      sendOctets(context, await streams.packFiles(sandbox, path, user), STREAM_ROUTES.packFiles.output.bytes),
    unpackFiles: async ({ sandbox, path, user }, context) => {
      const report = await streams.unpackFiles(sandbox, path, Readable.from(body(context)), user);
      return context.json(STREAM_ROUTES.unpackFiles.output.json.parse(report));
    },
  };
}

function addStream<Name extends HttpStreamName>(app: Hono<AppEnv>, handlers: Handlers, name: Name): void {
  const { method, path, input } = STREAM_ROUTES[name];
  app.on(method.toUpperCase(), routerPath(path), (context) =>
    handlers[name](parse(input, merge(context.req.param(), readQuery(context.req.url))) as StreamParsedOf<Name>, context),
  );
}

export function addStreamRoutes(app: Hono<AppEnv>, { streams }: Engine): void {
  const handlers = handlersOf(streams);
  for (const name of Object.keys(handlers) as HttpStreamName[]) addStream(app, handlers, name);
}
