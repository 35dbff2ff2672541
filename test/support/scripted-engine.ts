/** An engine that answers from a script: the API is tested without sandboxes, its own behaviour is real. */
import { once } from "node:events";
import { connect, createServer, type Server } from "node:net";
import { Readable, type Duplex } from "node:stream";
import { EventFeed } from "../../src/base/events/events.ts";
import type { Engine, Handlers, Streams } from "../../src/interfaces/operations/operations.ts";
import type { CommandEnd } from "../../src/base/schema/command.ts";
import { VivError } from "../../src/base/schema/errors.ts";
import type { FileEntry } from "../../src/base/schema/files.ts";
import type { ExecOpen } from "../../src/base/schema/streams.ts";
import type { Store } from "../../src/base/store/store.ts";
import { aCommand, aSandbox, aSandboxRow } from "./rows.ts";

export const SANDBOX = aSandbox({ name: "one" });

export const END: CommandEnd = {
  cause: "exit",
  exitCode: 0,
  signal: null,
  message: null,
  wallMs: 1,
  cpuMs: 1,
  outputBytes: 0,
  droppedBytes: 0,
};

const entry = (size: number): FileEntry => ({
  path: "naïve.txt",
  type: "file",
  size,
  mode: "644",
  modifiedAt: new Date().toISOString(),
  uid: 0,
  gid: 0,
  target: null,
});

type CommandStream = Awaited<ReturnType<Streams["exec"]>>;

/** A command that gives back its input (`echo`), writes without end (`yes`), or never reads (`stuck`). */
export class ScriptedCommand implements CommandStream {
  readonly command;
  readonly output;
  readonly #end = Promise.withResolvers<CommandEnd>();
  readonly end = this.#end.promise;
  readonly seen: string[] = [];
  produced = 0;
  accepted = 0;
  closed = false;
  readonly #kind: string;
  #input: Buffer[] = [];
  #inputEnded = false;
  #wake: (() => void) | undefined;

  constructor(kind: string) {
    this.#kind = kind;
    this.command = aCommand(SANDBOX.id, { command: [kind] });
    this.output = this.#produce();
    this.end.catch(() => undefined);
  }

  async *#produce(): CommandStream["output"] extends AsyncIterable<infer Chunk> ? AsyncGenerator<Chunk, void, void> : never {
    while (!this.closed) {
      if (this.#kind === "yes") {
        this.produced += 64 * 1024;
        yield { stream: "stdout", data: Buffer.alloc(64 * 1024, "y") };
        continue;
      }
      const data = this.#kind === "echo" ? this.#input.shift() : undefined;
      if (data !== undefined) yield { stream: "stdout", data };
      else if (this.#inputEnded) break;
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
    if (this.#kind === "echo") yield { stream: "gap", bytes: 3 };
    if (this.#kind === "echo") yield { stream: "stderr", data: Buffer.from("done") };
    this.#end.resolve(END);
  }

  async write(data: Uint8Array): Promise<void> {
    if (this.#kind === "stuck") return new Promise(() => undefined);
    while (this.#input.length > 4) await new Promise((resolve) => setImmediate(resolve));
    this.accepted += data.length;
    this.#input.push(Buffer.from(data));
    this.#wake?.();
  }

  endInput(): void {
    this.#inputEnded = true;
    this.#wake?.();
  }

  resize(rows: number, cols: number): void {
    this.seen.push(`resize ${rows}x${cols}`);
  }

  signal(signal: string): void {
    this.seen.push(`signal ${signal}`);
  }

  close(): void {
    this.closed = true;
    this.#wake?.();
  }
}

export class ScriptedEngine implements Engine {
  /** Operations called, with their parsed input. */
  readonly calls: { name: string; input: unknown }[] = [];
  readonly commands: ScriptedCommand[] = [];
  readonly opened: ExecOpen[] = [];
  readonly written = new Map<string, Buffer>();
  readonly operations: Handlers;
  readonly streams: Streams;
  readonly feed: EventFeed;
  /** Port outside that stands for every port inside. */
  portOutside = 0;
  answers: Record<string, () => unknown> = {};

  constructor(store: Store) {
    this.feed = new EventFeed(store);
    this.operations = new Proxy({} as Handlers, {
      get: (_, name: string) => async (input: unknown) => {
        this.calls.push({ name, input });
        const answer = this.answers[name] ?? DEFAULT_ANSWERS[name];
        if (answer === undefined) throw new Error(`no script for ${name}`);
        return answer();
      },
    });
    this.streams = this.#makeStreams();
  }

  #makeStreams(): Streams {
    return {
      exec: async (sandbox, open) => {
        if (sandbox === "missing") throw new VivError("not_found", "There is no sandbox called missing.");
        this.opened.push(open);
        return this.#command(open.command[0] ?? "");
      },
      attach: async (_sandbox, _command, stdin) => this.#command(stdin ? "echo" : "yes"),
      dial: async (_sandbox, port) => this.#dial(port),
      lead: async (_sandbox, port, local) => {
        const inside = await this.#dial(port);
        inside.pipe(local).pipe(inside);
        local.resume();
        return { ended: once(local, "close"), cut: () => local.destroy() };
      },
      executionEvents: async () => (async function* () {})(),
      notebook: async () => this.#dial(0),
      screenshot: async () => Buffer.from("png"),
      desktop: async () => this.#dial(0),
      readFile: async () => ({ entry: entry(5), body: Readable.from([Buffer.from("hello")]) }),
      writeFile: async (_sandbox, path, body) => {
        const data = await collect(body);
        this.written.set(path, data);
        return entry(data.length);
      },
      carryFile: async () => undefined,
      runEvents: async () => (async function* () {})(),
      callHook: async () => "",
      jobOutput: async () => (async function* () {})(),
      patch: async () => Readable.from([Buffer.from("patch")]),
      packFiles: async () => Readable.from([Buffer.from("tar")]),
      unpackFiles: async (_sandbox, path, archive) => {
        const data = await collect(archive);
        this.written.set(path, data);
        return { files: 1, bytes: data.length };
      },
      watchFiles: async () =>
        (async function* () {
          yield { change: "created" as const, path: "a" };
          yield { change: "removed" as const, path: "a" };
        })(),
      events: async (after, options) => this.feed.listen(after, options),
    };
  }

  #command(kind: string): ScriptedCommand {
    const command = new ScriptedCommand(kind);
    this.commands.push(command);
    return command;
  }

  async #dial(port: number): Promise<Duplex> {
    if (port === 9) throw new VivError("port_unreachable", "Nothing listens on port 9.");
    return new Promise((resolve, reject) => {
      const socket = connect({ host: "127.0.0.1", port: this.portOutside, allowHalfOpen: true }, () => resolve(socket));
      socket.once("error", reject);
    });
  }
}

const DEFAULT_ANSWERS: Record<string, () => unknown> = {
  createSandbox: () => aSandboxRow({ name: "made", env: { SECRET: "s3cret" } }),
  listSandboxes: () => ({ sandboxes: [SANDBOX] }),
  stopSandbox: () => ({ ...SANDBOX, state: "completed" }),
  removeSandbox: () => ({ ok: true }),
  listFiles: () => ({ entries: [] }),
  prune: () => ({ sandboxes: 0, snapshots: 0, bases: 0, leftovers: [] }),
};

export async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const list: Item[] = [];
  for await (const item of items) list.push(item);
  return list;
}

export async function collect(body: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** A TCP server that gives back what it gets, and ends when its peer does. */
export async function echoServer(): Promise<Server> {
  const server = createServer({ allowHalfOpen: true }, (socket) => void socket.pipe(socket));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}
