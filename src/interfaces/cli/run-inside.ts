/** Runs a command in a sandbox for exec, shell and run: as the caller would run it here. */
import { projectInside } from "../../base/schema/workspace.ts";
import { isAbsolute, resolve } from "node:path";
import { Writable } from "node:stream";
import type { Client, CommandStream } from "../client/client.ts";
import type { CommandSpec, TerminalSize } from "../../base/schema/command.ts";
import type { Sandbox } from "../../base/schema/sandbox.ts";
import type { Invocation, OptionDeclarations, OptionValues } from "./command.ts";
import { approverIfAny } from "./approver.ts";
import { hasTerminal, OWN_PROCESS, type Caller } from "./caller.ts";
import type { QuestionSource, QuestionContext, InlineQuestions } from "./inline-questions.ts";
import { HeldOutput } from "./held-output.ts";
import { explainEnd, runSession, UNREAD_EXIT_CODE } from "./session.ts";
import { clean } from "./text.ts";
import { isWithin } from "./within.ts";
import { parsePairs } from "./values.ts";
import type { WatchContext } from "./watch-experiment.ts";

const REDRAW_MS = 50;

export const RUN_OPTIONS = {
  user: { type: "text", short: "u", value: "USER", summary: "Run as this user inside, by name or number" },
  cwd: {
    type: "text",
    short: "w",
    value: "PATH",
    completes: "path",
    summary: "Run in this folder inside, relative to this one if it is in the project, else to the project's; `.` if left out",
  },
  env: {
    type: "list",
    short: "e",
    value: "NAME=VALUE",
    summary: "Set a variable; a bare NAME passes yours on; may be given several times",
  },
  timeout: { type: "duration", value: "TIME", summary: "End the command after this time, such as 90s; the exit code is 124 then" },
  tty: { type: "flag", short: "t", summary: "Give it a terminal even if stdin and stdout are not one" },
  "no-tty": { type: "flag", short: "T", summary: "Give it no terminal" },
  interactive: { type: "flag", short: "i", summary: "Pass stdin on; this is always done, the option is for habit" },
  "no-stdin": { type: "flag", summary: "Pass no stdin on, for use in loops that read it" },
} as const satisfies OptionDeclarations;

export type RunOptions = OptionValues<typeof RUN_OPTIONS>;

/** What every command carries of its caller: the folder, where the clone has it too, and what its terminal is like. */
export function commandSpec(
  sandbox: Sandbox,
  line: readonly string[],
  options: RunOptions,
  invocation: Pick<Invocation, "cwd" | "env" | "caller">,
): CommandSpec {
  const cwd = folderInside(sandbox, options.cwd, invocation.cwd);
  const env: Record<string, string> = {};
  for (const name of ["TERM", "COLORTERM"]) {
    const value = invocation.env[name];
    if (value !== undefined && wantsTerminal(options, invocation.caller)) env[name] = value;
  }
  Object.assign(env, parsePairs("--env", options.env, invocation.env));
  return {
    command: [...line],
    ...(cwd === undefined ? {} : { cwd }),
    ...(Object.keys(env).length === 0 ? {} : { env }),
    ...(options.user === undefined ? {} : { user: options.user }),
    ...(options.timeout === undefined ? {} : { timeoutMs: options.timeout }),
  };
}

/** A relative folder starts where the command would run without one; undefined is the project's folder. */
function folderInside(sandbox: Sandbox, asked: string | undefined, callers: string): string | undefined {
  const here = sandbox.start === null && isWithin(sandbox.project, callers) ? callers : undefined;
  if (asked === undefined) return here;
  return isAbsolute(asked) ? asked : resolve(here ?? projectInside(sandbox), asked);
}

function wantsTerminal(options: RunOptions, caller: Caller): boolean {
  if (options["no-tty"]) return false;
  return options.tty || hasTerminal(caller);
}

/** That of the caller's own, where there is one. */
export function terminalSize({ stdout }: Caller): TerminalSize {
  return { rows: stdout.rows || 24, cols: stdout.columns || 80 };
}

/** Runs to the end and returns the exit code. */
export async function runInside(
  client: Client,
  sandbox: string,
  spec: CommandSpec,
  options: RunOptions,
  invocation: Pick<Invocation, "screen" | "json" | "env" | "caller">,
): Promise<number> {
  const { screen, json, env, caller } = invocation;
  const terminal = !json && wantsTerminal(options, caller);
  const stdin = !options["no-stdin"];
  const stream = await client.exec(sandbox, {
    ...spec,
    stdin,
    onDisconnect: "kill",
    ...(terminal ? { terminal: terminalSize(caller) } : {}),
  });
  const collected = json ? { stdout: new Collector(), stderr: new Collector() } : undefined;
  const asked = terminal && stdin ? await askOver(stream, { client, screen, env, caller }, sandbox) : undefined;
  const onGap = (bytes: number): void => {
    const line = `viv: ${bytes} bytes of output were dropped.`;
    if (asked === undefined) screen.warn(line);
    else asked.stdout.write(`${line}\r\n`);
  };
  const session = { caller, terminal, stdin, signals: "forward", detachable: false, onGap, ...asked?.session, ...collected } as const;
  const end = await runSession(stream, session).finally(() => asked?.questions.end());
  if (typeof end === "string") return UNREAD_EXIT_CODE;
  if (collected) {
    const { stdout, stderr } = collected;
    const truncated = stdout.truncated || stderr.truncated;
    screen.json({ ...stream.command, running: false, end, stdout: stdout.text, stderr: stderr.text, truncated });
  }
  const explanation = explainEnd(end);
  if (explanation !== undefined) screen.say(`viv: ${clean(explanation)}`);
  return end.exitCode;
}

/** Questions over a command that has the terminal: its output waits while one is on the screen. */
async function askOver(stream: CommandStream, around: WatchContext & { readonly caller: Caller }, sandbox: string) {
  const target = around.caller.stdout;
  const redraw = (): void => {
    const { rows = 0, columns = 0 } = target;
    // Programs draw again when the size has changed, and some look whether it has.
    stream.resize(Math.max(1, rows - 1), columns);
    setTimeout(() => stream.resize(rows, columns), REDRAW_MS);
  };
  const stdout = new HeldOutput(target, redraw);
  const questions = await askInline({ ...around, say: (line) => around.screen.say(line), stage: stdout }, sandbox);
  if (questions === undefined) return undefined;
  return { questions, stdout, session: { stdout, filter: (typed: Buffer) => questions.pass(typed) } };
}

/** A person at a terminal is asked there. A caller that may not answer is not asked. */
export async function askInline(around: QuestionContext, askers: QuestionSource): Promise<InlineQuestions | undefined> {
  const { caller = OWN_PROCESS } = around;
  if (!hasTerminal(caller)) return undefined;
  const approver = caller.approver ?? approverIfAny(around.env, caller);
  if (approver === undefined) return undefined;
  const inline = await import("./inline-questions.ts");
  const questions = new inline.InlineQuestions(around, askers, approver);
  questions.start();
  return questions;
}

const COLLECTED_BYTES = 1024 ** 2;

/** Keeps the last part of what is written to it. */
class Collector extends Writable {
  #chunks: Buffer[] = [];
  #length = 0;
  truncated = false;

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    while (this.#length - (this.#chunks[0]?.length ?? 0) >= COLLECTED_BYTES) {
      this.#length -= this.#chunks.shift()?.length ?? 0;
      this.truncated = true;
    }
    done();
  }

  get text(): string {
    const all = Buffer.concat(this.#chunks);
    if (all.length > COLLECTED_BYTES) this.truncated = true;
    return all.subarray(Math.max(0, all.length - COLLECTED_BYTES)).toString("utf8");
  }
}
