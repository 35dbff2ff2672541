/** The typed client of the API, over any transport. It runs in browsers, too. */
import type { z } from "zod";
import type { InputOf, OperationName, OutputOf } from "../../base/schema/contracts.ts";
import { VivError } from "../../base/schema/errors.ts";
import type { FileEntry } from "../../base/schema/files.ts";
import { ENTRY_HEADER, ROUTES, STREAMS } from "../../base/schema/routes.ts";
import type { EventStreamName, StreamEventOf, StreamInputOf, StreamJsonOf, StreamName } from "../../base/schema/stream-routes.ts";
import type { ExecOpen } from "../../base/schema/streams.ts";
import { ChannelCommand, type CommandStream } from "./command-stream.ts";
import { readEvents } from "./sse.ts";
import type { Answer, Channel, HttpRequest, Transport } from "./transport.ts";

/** A stream begins at once; one that does not was asked for over a connection that has died. */
const STREAM_BEGINS_MS = 20_000;

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

export function streamAddress<Name extends StreamName>(name: Name, input: StreamInputOf<Name>): string {
  return address(STREAMS[name].path, input);
}

/** Names of files are bytes: what is no UTF-8 goes as the byte it stands for. */
function encodeField(value: string): string {
  if (value.isWellFormed()) return encodeURIComponent(value);
  return Array.from(value, (character) => {
    const unit = character.charCodeAt(0);
    const isByte = character.length === 1 && unit >= 0xdc80 && unit <= 0xdcff;
    return isByte ? `%${(unit - 0xdc00).toString(16)}` : encodeURIComponent(character.toWellFormed());
  }).join("");
}

function withSignal(signal: AbortSignal | undefined): { signal?: AbortSignal } {
  return signal === undefined ? {} : { signal };
}

/** Up to where the path inside begins. */
function portAddress(sandbox: string, port: number): string {
  return `/sandboxes/${encodeURIComponent(sandbox)}/ports/${port}/http`;
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
async function* broken(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, void> {
  try {
    yield* body;
  } catch (error) {
    throw new VivError("server_unreachable", "The connection to the server broke off.", { cause: error });
  }
}

/** Answers with bytes have the body that the transport gives. */
export class ApiClient<Body extends AsyncIterable<Uint8Array> = AsyncIterable<Uint8Array>> {
  readonly #transport: Transport<Body>;

  constructor(transport: Transport<Body>) {
    this.#transport = transport;
  }

  async call<Name extends OperationName>(name: Name, input: InputOf<Name>, signal?: AbortSignal): Promise<OutputOf<Name>> {
    const { method, path } = ROUTES[name];
    const fields = input as Fields;
    const cancel = withSignal(signal);
    if (method !== "post") return this.#transport.json({ method: method.toUpperCase(), path: address(path, fields), ...cancel });
    const { path: target, rest } = route(path, fields);
    return this.#transport.json({ method: "POST", path: target, body: JSON.stringify(rest), contentType: "application/json", ...cancel });
  }

  async exec(sandbox: string, open: z.input<typeof ExecOpen>): Promise<CommandStream> {
    const socket = await this.#transport.webSocket(streamAddress("exec", { sandbox }));
    return ChannelCommand.over(socket, JSON.stringify(open));
  }

  async attach(sandbox: string, command: string, options: { stdin?: boolean } = {}): Promise<CommandStream> {
    const socket = await this.#transport.webSocket(streamAddress("attach", { sandbox, command, stdin: options.stdin }));
    return ChannelCommand.over(socket);
  }

  /** A request to a port inside; its answer as it is, whatever its status. */
  async askPort(sandbox: string, port: number, request: HttpRequest): Promise<Answer<Body>> {
    return this.#transport.send({ ...request, path: `${portAddress(sandbox, port)}${request.path}` });
  }

  /** A WebSocket to a port inside. */
  async portSocket(sandbox: string, port: number, path: string, protocols: readonly string[]): Promise<Channel> {
    return this.#transport.webSocket(`${portAddress(sandbox, port)}${path}`, protocols);
  }

  /** RFB to the screen of a sandbox; with control, keys and pointer are this connection's until it ends. */
  async screen(sandbox: string, options: { control?: boolean } = {}): Promise<Channel> {
    return this.#transport.webSocket(streamAddress("desktop", { sandbox, ...options }));
  }

  /** The screen of a sandbox, as a PNG file. */
  async screenshot(sandbox: string, signal?: AbortSignal): Promise<Body> {
    return (await this.#get(streamAddress("screenshot", { sandbox }), signal)).body;
  }

  async readFile(sandbox: string, path: string, user?: string, signal?: AbortSignal): Promise<{ entry: FileEntry; body: Body }> {
    const { headers, body } = await this.#get(streamAddress("readFile", { sandbox, path, user }), signal);
    return { entry: JSON.parse(headers.get(ENTRY_HEADER) ?? "null") as FileEntry, body };
  }

  async writeFile(
    sandbox: string,
    path: string,
    body: AsyncIterable<Uint8Array>,
    options: { user?: string; mode?: number; parents?: boolean; signal?: AbortSignal } = {},
  ): Promise<StreamJsonOf<"writeFile">> {
    const { mode, signal, ...rest } = options;
    const target = streamAddress("writeFile", {
      sandbox,
      path,
      ...rest,
      ...(mode === undefined ? {} : { mode: mode.toString(8) }),
    });
    return this.#transport.json({ method: "PUT", path: target, body, contentType: "application/octet-stream", ...withSignal(signal) });
  }

  /** What a sandbox changed in the project, for `git apply`. */
  async patch(sandbox: string, options: { readonly promotable?: boolean } = {}, signal?: AbortSignal): Promise<Body> {
    return (await this.#get(streamAddress("patch", { sandbox, ...options }), signal)).body;
  }

  /** A file or folder as a tar archive. */
  async packFiles(sandbox: string, path: string, user?: string, signal?: AbortSignal): Promise<Body> {
    return (await this.#get(streamAddress("packFiles", { sandbox, path, user }), signal)).body;
  }

  /** Unpacks a tar archive into a folder inside. */
  async unpackFiles(
    sandbox: string,
    path: string,
    archive: AsyncIterable<Uint8Array>,
    user?: string,
    signal?: AbortSignal,
  ): Promise<StreamJsonOf<"unpackFiles">> {
    return this.#transport.json({
      method: "PUT",
      path: streamAddress("unpackFiles", { sandbox, path, user }),
      body: archive,
      contentType: "application/x-tar",
      ...withSignal(signal),
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

  /** Events of a run after a number, then live ones, until it has ended or the signal. */
  runEvents(run: string, after: number, signal: AbortSignal): AsyncIterable<StreamEventOf<"runEvents">> {
    return this.#listen("runEvents", { run, after }, signal);
  }

  /** Outputs of an execution so far, then those that come, until it has ended or the signal. */
  executionEvents(sandbox: string, execution: string, signal: AbortSignal): AsyncIterable<StreamEventOf<"executionEvents">> {
    return this.#listen("executionEvents", { sandbox, execution }, signal);
  }

  /** Output of a job from its beginning on, then how it ended, or until the signal. */
  jobOutput(job: string, signal: AbortSignal): AsyncIterable<StreamEventOf<"jobOutput">> {
    return this.#listen("jobOutput", { job }, signal);
  }

  #get(path: string, signal: AbortSignal | undefined): Promise<Answer<Body>> {
    return this.#transport.request({ method: "GET", path, ...withSignal(signal) });
  }

  #listen<Name extends EventStreamName>(name: Name, input: StreamInputOf<Name>, signal: AbortSignal): AsyncIterable<StreamEventOf<Name>> {
    const transport = this.#transport;
    const path = streamAddress(name, input);
    return until(signal, async function* () {
      const late = new AbortController();
      const timer = setTimeout(() => late.abort(), STREAM_BEGINS_MS);
      const asked = transport.request({ method: "GET", path, signal: AbortSignal.any([signal, late.signal]) });
      const { body } = await asked.finally(() => clearTimeout(timer));
      yield* readEvents<StreamEventOf<Name>>(broken(body));
    });
  }

  close(): void {
    this.#transport.close();
  }
}
