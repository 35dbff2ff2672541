/** A shell line inside a sandbox, run to its end. Its output is bounded, and is data. */
import { stripVTControlCharacters } from "node:util";
import type { CommandEnd } from "../../base/schema/command.ts";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { Commands } from "../../sandbox/commands/commands.ts";
import { OutputTail } from "../../sandbox/commands/output-tail.ts";
import type { CommandStream } from "../../sandbox/commands/stream.ts";
import type { SandboxRow } from "../../base/store/rows.ts";

export interface LineOptions {
  readonly timeoutMs: number;
  /** Where it runs; the project's folder if left out. */
  readonly cwd?: string | undefined;
  readonly env?: Readonly<Record<string, string>>;
  /** Asks it to end, and kills it after a grace. */
  readonly stop?: AbortSignal;
  /** Kills it. */
  readonly kill: AbortSignal;
  /** Called when it runs. */
  readonly onRunning?: () => void;
}

export interface LineEnd {
  readonly end: CommandEnd;
  /** The last part of what it wrote, both streams as they came. */
  readonly output: string;
  readonly stdout: string;
  /** Of its errors, the end alone. */
  readonly stderr: string;
}

const ERROR_BYTES = 4096;
const SAID_CHARACTERS = 200;

export async function runLine(commands: Commands, row: SandboxRow, line: string, options: LineOptions): Promise<LineEnd> {
  if (options.kill.aborted) throw new VivError("cancelled", "It was cancelled.");
  const stream = await commands.start(row, {
    command: ["/bin/sh", "-c", line],
    timeoutMs: options.timeoutMs,
    onDisconnect: "kill",
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    ...(options.env === undefined ? {} : { env: { ...options.env } }),
  });
  options.onRunning?.();
  const forget = obey(stream, options);
  try {
    const both = new OutputTail(LIMITS.capturedOutputBytes);
    const alone = new OutputTail(LIMITS.capturedOutputBytes);
    const errors = new OutputTail(ERROR_BYTES);
    for await (const chunk of stream.output) {
      both.add(chunk.stream === "gap" ? chunk : { stream: "stdout", data: chunk.data });
      if (chunk.stream === "stdout") alone.add(chunk);
      else if (chunk.stream === "stderr") errors.add(chunk);
    }
    return { end: await stream.end, output: both.result().stdout, stdout: alone.result().stdout, stderr: errors.result().stderr };
  } finally {
    forget();
  }
}

/** Lets the signals end the command; the result ends that. */
function obey(stream: CommandStream, { stop, kill }: LineOptions): () => void {
  let grace: NodeJS.Timeout | undefined;
  const killing = (): void => stream.signal("KILL");
  const stopping = (): void => {
    if (kill.aborted) return;
    stream.signal("TERM");
    grace = setTimeout(killing, LIMITS.stopGraceMs);
  };
  kill.addEventListener("abort", killing, { once: true });
  stop?.addEventListener("abort", stopping, { once: true });
  // What came while the command was being started.
  if (kill.aborted) killing();
  else if (stop?.aborted === true) stopping();
  return () => {
    clearTimeout(grace);
    kill.removeEventListener("abort", killing);
    stop?.removeEventListener("abort", stopping);
  };
}

/** The last line with something on it of what it wrote to stderr, else of all its output; undefined where there is none. */
export function lastWords({ stderr, output }: Pick<LineEnd, "stderr" | "output">): string | undefined {
  for (const text of [stderr, output.slice(-ERROR_BYTES)]) {
    const lines = stripVTControlCharacters(text).split(/[\r\n]+/);
    const last = lines.findLast((line) => line.trim() !== "")?.trim();
    if (last !== undefined) return last.length > SAID_CHARACTERS ? `${last.slice(0, SAID_CHARACTERS)}...` : last;
  }
  return undefined;
}

/** The end of a text, whole lines where that is possible. */
export function tailOf(text: string, mostCharacters: number): string {
  if (text.length <= mostCharacters) return text;
  const cut = text.slice(-mostCharacters);
  const lineEnd = cut.indexOf("\n");
  return lineEnd < 0 || lineEnd > mostCharacters / 2 ? cut : cut.slice(lineEnd + 1);
}
