/**
 * Command lines that come whole: native/front sends its words, and the same code runs them here that `viv` would run in Node. What is
 * not in the list is the caller's own to run.
 */
import { setTimeout as delay } from "node:timers/promises";
import { Writable, type Duplex } from "node:stream";
import { encodeFields, encodeFrame, Fields, FrameDecoder, KIND, PROTOCOL_VERSION, type FieldList } from "../../base/host/frames.ts";
import type { CommandDeclaration } from "../cli/command.ts";
import exec from "../cli/commands/exec.ts";
import ls from "../cli/commands/ls.ts";
import ps from "../cli/commands/ps.ts";
import run from "../cli/commands/run.ts";
import shell from "../cli/commands/shell.ts";
import attempts from "../cli/commands/try.ts";
import { brokenOff, invoke, quietPipes, type FindCommand } from "../cli/invoke.ts";
import type { Engine } from "../operations/operations.ts";
import { CarriedFile } from "./carried-file.ts";
import { EngineClient } from "./engine-client.ts";
import { FrontCaller } from "./front-caller.ts";

const HOT: ReadonlyMap<string, CommandDeclaration> = new Map(
  [exec, ls, ps, run, shell, attempts].map((command) => [command.name, command]),
);
const REQUEST_MS = 10_000;

export interface FrontOptions {
  readonly engine: Engine;
  readonly version: string;
  /** Path of the server's own socket. */
  readonly socket: string;
  readonly closing: AbortSignal;
}

/** Frames of one front, from its request on. */
export function serveFront(socket: Duplex, head: Buffer, options: FrontOptions): void {
  const decoder = new FrameDecoder();
  let caller: FrontCaller | CarriedFile | undefined;
  const gone = new AbortController();
  const patience = delay(REQUEST_MS, undefined, { signal: gone.signal, ref: false }).then(
    () => void (caller === undefined && socket.destroy()),
    () => undefined,
  );
  const take = (chunk: Buffer): void => {
    try {
      for (const frame of decoder.push(chunk)) {
        if (caller !== undefined) caller.take(frame);
        else if (frame.kind === KIND.request) caller = begin(socket, new Fields(frame.payload), options, gone.signal);
      }
    } catch {
      // What breaks the protocol is no front.
      socket.destroy();
    }
  };
  socket.on("data", take);
  socket.on("error", () => socket.destroy());
  socket.on("end", () => socket.destroy());
  socket.once("close", () => {
    gone.abort();
    if (!options.closing.aborted) caller?.leave();
  });
  options.closing.addEventListener("abort", () => socket.destroy(), { once: true, signal: gone.signal });
  void patience;
  if (head.length > 0) take(head);
}

function reply(socket: Duplex, fields: FieldList): void {
  socket.write(encodeFrame(KIND.reply, encodeFields(fields)));
}

/** Whether this server runs the line as the caller's own Node would. */
function isTaken(request: Fields, { version }: FrontOptions): boolean {
  const [verb = "", ...words] = request.all("arg");
  const isOurs = request.number("v") === PROTOCOL_VERSION && request.get("version") === version;
  return isOurs && request.number("uid") === process.getuid?.() && (isHot(verb, words) || request.get("carry") !== undefined);
}

/** A file that the caller names is the caller's to read: it may see other files at that path. */
function isHot(verb: string, words: readonly string[]): boolean {
  return HOT.has(verb) && !(verb === attempts.name && words.some((word) => /^(--file|-f)/.test(word)));
}

function begin(socket: Duplex, request: Fields, options: FrontOptions, gone: AbortSignal): FrontCaller | CarriedFile | undefined {
  if (!isTaken(request, options)) {
    socket.end(encodeFrame(KIND.reply, encodeFields([["node", "1"]])));
    return undefined;
  }
  if (request.get("carry") !== undefined) {
    const file = new CarriedFile(socket);
    void file.serve(request, options.engine);
    return file;
  }
  const caller = new FrontCaller(socket, request, gone);
  const argv = request.all("arg");
  const env = environment(request.all("env"));
  const lost = { stdout: new Text(caller.stdout.isTTY), stderr: new Text(caller.stderr.isTTY) };
  const code = brokenOff(argv, { env, caller: lost });
  // From here on the line is this server's: if it dies, the caller must not run it again.
  reply(socket, [
    ["ok", "1"],
    ["lost_stdout", lost.stdout.text],
    ["lost_stderr", lost.stderr.text],
    ["lost_code", String(code)],
  ]);
  const end = (status: number): void => {
    if (socket.writable) socket.end(encodeFrame(KIND.exit, encodeFields([["code", String(status)]])));
  };
  quietPipes(caller, end);
  const client = new EngineClient(options.socket, options.engine, gone, options.closing);
  const around = { env, caller, cwd: () => request.get("cwd") ?? "/", client: async () => client };
  invoke(argv, find, around)
    .then(end, () => socket.destroy())
    .finally(() => client.close());
  return caller;
}

const find: FindCommand = async ([verb = "", ...words]) => {
  const declaration = HOT.get(verb);
  return declaration === undefined ? { words } : { declaration, words };
};

/** Of variables that are given twice, Node sees the first. */
function environment(variables: readonly string[]): Record<string, string> {
  const result: Record<string, string> = {};
  for (const variable of variables) {
    const equals = variable.indexOf("=");
    const name = variable.slice(0, equals);
    if (equals > 0 && !Object.hasOwn(result, name)) result[name] = variable.slice(equals + 1);
  }
  return result;
}

class Text extends Writable {
  readonly isTTY: boolean;
  text = "";

  constructor(isTTY: boolean) {
    super();
    this.isTTY = isTTY;
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.text += chunk.toString();
    done();
  }
}
