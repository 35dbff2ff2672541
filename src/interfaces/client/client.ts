/** The typed client of the API. */
import type { IncomingMessage } from "node:http";
import type { Duplex, Readable } from "node:stream";
import type { z } from "zod";
import type { InputOf, OperationName, OutputOf } from "../../base/schema/contracts.ts";
import { VivError } from "../../base/schema/errors.ts";
import type { FileEntry } from "../../base/schema/files.ts";
import { encodePath } from "../../base/schema/path-bytes.ts";
import { ENTRY_HEADER, ROUTES, STREAMS } from "../../base/schema/routes.ts";
import type { EventStreamName, StreamEventOf, StreamInputOf, StreamJsonOf, StreamName } from "../../base/schema/stream-routes.ts";
import type { ExecOpen } from "../../base/schema/streams.ts";
import { SocketStream } from "../../base/wire/wire.ts";
import { CommandStream } from "./command-stream.ts";
import { readEvents } from "./sse.ts";
import { Transport, type Address } from "./transport.ts";

export { CommandStream };

type Fields = Readonly<Record<string, unknown>>;

/** A field as it stands in a path or query. */
function text(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** A route with its fields: those of the path in it, the others in `rest`. Fields without value are left out. */
function route(template: string, input: Fields): { path: string; rest: Fields } {
  const rest: Record<string, unknown> = {};
  let path = template;
  for (const [name, value] of Object.entries(input)) {
    if (value === undefined) continue;
    if (path.includes(`{${name}}`)) path = path.replace(`{${name}}`, encodeURIComponent(text(value)));
    else rest[name] = value;
  }
  return { path, rest };
}

function address(template: string, input: Fields): string {
  const { path, rest } = route(template, input);
  const query = Object.entries(rest).map(([name, value]) => `${name}=${encodeField(text(value))}`);
  return query.length === 0 ? path : `${path}?${query.join("&")}`;
}

function streamAddress<Name extends StreamName>(name: Name, input: StreamInputOf<Name>): string {
  return address(STREAMS[name].path, input);
}

/** Names of files are bytes: what is no UTF-8 goes as the byte it stands for. */
function encodeField(value: string): string {
  if (value.isWellFormed()) return encodeURIComponent(value);
  return [...encodePath(value)].map((byte) => `%${byte.toString(16).padStart(2, "0")}`).join("");
}

/** Ends quietly when its reader's signal says so. */
async function* until<Item>(signal: AbortSignal, items: () => AsyncIterable<Item>): AsyncGenerator<Item, void, void> {
  try {
    yield* items();
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/** A stream that breaks off is an unreachable server. */
async function* broken(answer: IncomingMessage): AsyncGenerator<Buffer, void, void> {
  try {
    yield* answer as AsyncIterable<Buffer>;
  } catch (error) {
    throw new VivError("server_unreachable", "The connection to the server broke off.", { cause: error });
  }
}

export class Client {
  readonly #transport: Transport;

  constructor(where: Address) {
    this.#transport = new Transport(where);
  }

  async call<Name extends OperationName>(name: Name, input: InputOf<Name>, signal?: AbortSignal): Promise<OutputOf<Name>> {
    const { method, path } = ROUTES[name];
    const fields = input as Fields;
    const cancel = signal === undefined ? {} : { signal };
    if (method !== "post") return this.#transport.json({ method: method.toUpperCase(), path: address(path, fields), ...cancel });
    const { path: target, rest } = route(path, fields);
    return this.#transport.json({ method: "POST", path: target, body: JSON.stringify(rest), contentType: "application/json", ...cancel });
  }

  async exec(sandbox: string, open: z.input<typeof ExecOpen>): Promise<CommandStream> {
    const socket = await this.#transport.webSocket(streamAddress("exec", { sandbox }));
    return CommandStream.over(socket, JSON.stringify(open));
  }

  async attach(sandbox: string, command: string, options: { stdin?: boolean } = {}): Promise<CommandStream> {
    const socket = await this.#transport.webSocket(streamAddress("attach", { sandbox, command, stdin: options.stdin }));
    return CommandStream.over(socket);
  }

  /** One TCP connection to a port inside. */
  async dial(sandbox: string, port: number): Promise<Duplex> {
    return new SocketStream(await this.#transport.webSocket(streamAddress("tunnel", { sandbox, port })));
  }

  async readFile(sandbox: string, path: string, user?: string): Promise<{ entry: FileEntry; body: Readable }> {
    const body = await this.#transport.request({ method: "GET", path: streamAddress("readFile", { sandbox, path, user }) });
    return { entry: JSON.parse(String(body.headers[ENTRY_HEADER])) as FileEntry, body };
  }

  async writeFile(
    sandbox: string,
    path: string,
    body: AsyncIterable<Uint8Array>,
    options: { user?: string; mode?: number; parents?: boolean } = {},
  ): Promise<StreamJsonOf<"writeFile">> {
    const { mode, ...rest } = options;
    const target = streamAddress("writeFile", {
      sandbox,
      path,
      ...rest,
      ...(mode === undefined ? {} : { mode: mode.toString(8) }),
    });
    return this.#transport.json({ method: "PUT", path: target, body, contentType: "application/octet-stream" });
  }

  /** What a sandbox changed in the project, for `git apply`. */
  async patch(sandbox: string, options: { readonly promotable?: boolean } = {}): Promise<Readable> {
    return this.#transport.request({ method: "GET", path: streamAddress("patch", { sandbox, ...options }) });
  }

  /** A file or folder as a tar archive. */
  async packFiles(sandbox: string, path: string, user?: string): Promise<Readable> {
    return this.#transport.request({ method: "GET", path: streamAddress("packFiles", { sandbox, path, user }) });
  }

  /** Unpacks a tar archive into a folder inside. */
  async unpackFiles(
    sandbox: string,
    path: string,
    archive: AsyncIterable<Uint8Array>,
    user?: string,
  ): Promise<StreamJsonOf<"unpackFiles">> {
    return this.#transport.json({
      method: "PUT",
      path: streamAddress("unpackFiles", { sandbox, path, user }),
      body: archive,
      contentType: "application/x-tar",
    });
  }

  watchFiles(
    sandbox: string,
    path: string,
    options: { user?: string; recursive?: boolean; signal: AbortSignal },
  ): AsyncIterable<StreamEventOf<"watchFiles">> {
    const { signal, ...rest } = options;
    return this.#listen("watchFiles", { sandbox, path, ...rest }, signal);
  }

  /** Events after a sequence number, then live ones, until the signal; `uses` names a sandbox that is in use meanwhile. */
  events(
    after: number,
    options: { sandbox?: string; uses?: string; as?: string; signal: AbortSignal },
  ): AsyncIterable<StreamEventOf<"events">> {
    const { signal, ...about } = options;
    return this.#listen("events", { after, ...about }, signal);
  }

  #listen<Name extends EventStreamName>(name: Name, input: StreamInputOf<Name>, signal: AbortSignal): AsyncIterable<StreamEventOf<Name>> {
    const transport = this.#transport;
    const path = streamAddress(name, input);
    return until(signal, async function* () {
      yield* readEvents<StreamEventOf<Name>>(broken(await transport.request({ method: "GET", path, signal })));
    });
  }

  close(): void {
    this.#transport.close();
  }
}
