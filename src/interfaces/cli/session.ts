/** A command inside, wired to this process: input, output, signals and the terminal, unchanged both ways. */
import { once } from "node:events";
import type { Writable } from "node:stream";
import type { CommandEnd } from "../../base/schema/command.ts";
import type { CommandStream } from "../client/client.ts";
import { OWN_PROCESS, type Caller } from "./caller.ts";
import { DetachKeys } from "./detach-keys.ts";

export interface SessionOptions {
  /** This process if left out. */
  readonly caller?: Caller;
  /** Raw keys and resizes go to the command. */
  readonly terminal: boolean;
  readonly stdin: boolean;
  /** Signals to this process are the command's, or make this process leave while the command goes on. */
  readonly signals: "forward" | "leave";
  /** Ctrl-P ctrl-Q leaves the command running. */
  readonly detachable: boolean;
  /** What of the keys is the command's; all of them if left out. */
  readonly filter?: (typed: Buffer) => Buffer;
  readonly onGap: (bytes: number) => void;
  /** Where output goes; this process's own if left out. */
  readonly stdout?: Writable;
  readonly stderr?: Writable;
}

const FORWARDED = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"] as const;
/** A command that has written so much will write more; for less, one more connection would not pay. */
const MUCH_OUTPUT_BYTES = 256 * 1024;
const LEAVING = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** How a session ends: with its command, by the user's leaving, or because the reader of the output is gone. */
export type SessionEnd = CommandEnd | "detached" | "unread";

/** Exit code of a program whose output has no reader: 128 + SIGPIPE. */
export const UNREAD_EXIT_CODE = 141;

export async function runSession(stream: CommandStream, options: SessionOptions): Promise<SessionEnd> {
  const left = Promise.withResolvers<"detached" | "unread">();
  const undo: Undo[] = [];
  const { caller = OWN_PROCESS } = options;
  try {
    undo.push(noticeClosedPipes(caller, () => left.resolve("unread")));
    undo.push(options.signals === "forward" ? forwardSignals(caller, stream) : leaveOnSignals(caller, () => left.resolve("detached")));
    if (options.terminal) undo.push(useTerminal(caller, stream));
    if (options.stdin)
      undo.push(pumpInput(caller, stream, options.filter, options.detachable ? () => left.resolve("detached") : undefined));
    const ended = pumpOutput(caller, stream, options).then(() => stream.end);
    // After the reader has left, an error of the output needs no report.
    left.promise.then(() => ended.catch(() => undefined)).catch(() => undefined);
    return await Promise.race([left.promise, ended]);
  } finally {
    for (const step of undo.toReversed()) step();
    stream.close();
  }
}

type Undo = () => void;

function noticeClosedPipes({ stdout, stderr }: Caller, onClosed: () => void): Undo {
  const notice = (error: NodeJS.ErrnoException): void => {
    if (error.code === "EPIPE") onClosed();
  };
  for (const stream of [stdout, stderr]) stream.prependListener("error", notice);
  return () => {
    for (const stream of [stdout, stderr]) stream.off("error", notice);
  };
}

/** The first ctrl-C goes to the command; a second one kills it. */
function forwardSignals(caller: Caller, stream: CommandStream): Undo {
  let interrupts = 0;
  const forward = (name: NodeJS.Signals): void => {
    if (name === "SIGINT") interrupts += 1;
    stream.signal(interrupts > 1 && name === "SIGINT" ? "KILL" : name.slice(3));
  };
  for (const name of FORWARDED) caller.on(name, forward);
  return () => {
    for (const name of FORWARDED) caller.off(name, forward);
  };
}

function leaveOnSignals(caller: Caller, onLeave: () => void): Undo {
  for (const name of LEAVING) caller.on(name, onLeave);
  return () => {
    for (const name of LEAVING) caller.off(name, onLeave);
  };
}

function useTerminal(caller: Caller, stream: CommandStream): Undo {
  const resize = (): void => {
    const { isTTY, rows, columns } = caller.stdout;
    if (isTTY && rows !== undefined && columns !== undefined) stream.resize(rows, columns);
  };
  const raw = (on: boolean): void => {
    if (caller.stdin.isTTY) caller.stdin.setRawMode?.(on);
  };
  const restore = (): void => raw(false);
  caller.on("SIGWINCH", resize);
  caller.on("exit", restore);
  raw(true);
  return () => {
    caller.off("SIGWINCH", resize);
    caller.off("exit", restore);
    restore();
  };
}

/** Reads on only when the command took what was read before. */
function pumpInput({ stdin }: Caller, stream: CommandStream, filter: SessionOptions["filter"], onDetach: (() => void) | undefined): Undo {
  const keys = onDetach === undefined ? undefined : new DetachKeys();
  const onData = (typed: Buffer): void => {
    const chunk = filter?.(typed) ?? typed;
    const passed = keys === undefined ? { data: chunk, detach: false } : keys.pass(chunk);
    if (passed.detach) onDetach?.();
    if (passed.data.length === 0) return;
    stdin.pause();
    stream.write(passed.data).then(
      () => stdin.resume(),
      // The command or the connection has ended; the code that waits for that reports it.
      () => undefined,
    );
  };
  const onEnd = (): void => stream.endInput();
  stdin.on("data", onData);
  stdin.once("end", onEnd);
  // A closed or unreadable standard input is an empty one.
  stdin.once("error", onEnd);
  return () => {
    stdin.off("data", onData);
    stdin.off("end", onEnd);
    stdin.pause();
    stdin.unref?.();
    // A read that is under way on a pipe or file would hold the process open.
    if (!stdin.isTTY) stdin.destroy();
  };
}

async function pumpOutput(caller: Caller, stream: CommandStream, options: SessionOptions): Promise<void> {
  const targets = { stdout: options.stdout ?? caller.stdout, stderr: options.stderr ?? caller.stderr };
  let before = options.stdout === undefined && options.stderr === undefined ? MUCH_OUTPUT_BYTES : Number.POSITIVE_INFINITY;
  for await (const chunk of stream.output) {
    if (chunk.stream === "gap") {
      options.onGap(chunk.bytes);
      continue;
    }
    before -= chunk.data.length;
    if (before <= 0) {
      before = Number.POSITIVE_INFINITY;
      handOver(caller, stream);
    }
    await write(targets[chunk.stream], chunk.data);
  }
  // Output that is held back is written before the session ends.
  if (options.stdout !== undefined) await new Promise<void>((resolve) => targets.stdout.write("", () => resolve()));
}

/** A caller that can reads the rest by itself. */
function handOver(caller: Caller, stream: CommandStream): void {
  if (caller.takeOutput === undefined) return;
  stream.handOver?.(async (handed) => caller.takeOutput?.(handed, () => stream.handBack?.()));
}

async function write(target: Writable, data: Uint8Array): Promise<void> {
  if (!target.write(data)) await once(target, "drain");
}

const USUAL_SIGNALS: ReadonlySet<string | null> = new Set(["SIGINT", "SIGTERM", "SIGHUP", "SIGPIPE", "INT", "TERM", "HUP", "PIPE"]);

/** The one line that explains an end a user did not cause; undefined where there is nothing to explain. */
export function explainEnd(end: CommandEnd): string | undefined {
  if (end.cause === "exit" || end.message === null) return undefined;
  if (end.cause === "signal" && USUAL_SIGNALS.has(end.signal)) return undefined;
  return end.message;
}
