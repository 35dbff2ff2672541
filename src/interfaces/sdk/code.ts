/** Code that runs piece by piece in a sandbox, with what the pieces before left. */
import { refuseUnknown, type CallOptions, type Connection } from "./connection.ts";
import { cancelled } from "./error.ts";
import { defined } from "./files.ts";
import { pause } from "./following.ts";
import type { CodeExecution, CodeOutput, Json } from "./types/notebooks.ts";

export interface CodeOptions extends CallOptions {
  /** Interrupts the code after this time, in milliseconds or as "10m"; never if left out. */
  readonly timeout?: number | string | undefined;
  /** Gets each output as it comes. */
  readonly onOutput?: ((output: CodeOutput) => void) | undefined;
}

/** A picture that code showed. It comes from the sandbox: show it as a picture, not as a page. */
export interface Picture {
  /** MIME type, such as image/png. */
  readonly type: string;
  readonly data: Uint8Array;
}

/** What came of a piece of code. An error that the code raises is a value, not an error. */
export interface CodeResult {
  /** failed: it raised an error, or its kernel ended. */
  readonly state: "done" | "failed" | "interrupted";
  /** Why it failed, where it was no error of the code. */
  readonly reason: string | null;
  /** What it printed. */
  readonly stdout: string;
  /** What it printed to standard error. */
  readonly stderr: string;
  /** The value of its last expression as text. */
  readonly text: string | null;
  /** The same value in all forms that it has, by MIME type. */
  readonly data: { readonly [type: string]: Json };
  /** Pictures that it showed, charts for example. */
  readonly pictures: readonly Picture[];
  /** The error that it raised. */
  readonly error: { readonly name: string; readonly value: string; readonly traceback: string } | null;
  /** All of it in the order in which it came. */
  readonly outputs: readonly CodeOutput[];
  /** Bytes of outputs beyond the limit, which were not kept. */
  readonly droppedBytes: number;
}

const INTERRUPT_AGAIN_MS = 500;
/** How long a cancelled call waits for its code to end. */
const LONGEST_END_MS = 5_000;

type Ended = Omit<CodeExecution, "outputs">;

/** A place where code leaves its variables. It is made when code first runs in it. */
export class CodeContext {
  readonly name: string;
  readonly #connection: Connection;
  readonly #sandbox: string;

  /** @internal */
  constructor(connection: Connection, sandbox: string, name: string) {
    this.#connection = connection;
    this.#sandbox = sandbox;
    this.name = name;
  }

  /** Runs code to its end, after what runs in the context already. A call that is cancelled interrupts it. */
  async run(code: string, options: CodeOptions = {}): Promise<CodeResult> {
    refuseUnknown("code", options, ["timeout", "onOutput", "signal"]);
    const { signal, onOutput, timeout } = options;
    if (isAborted(signal)) throw cancelled(signal);
    const input = { sandbox: this.#sandbox, context: this.name, code, background: true, ...defined({ timeout }) };
    const starting = this.#connection.call("executeCode", input);
    try {
      const { id } = await orCancelled(starting, signal);
      return await this.#follow(id, onOutput, signal);
    } catch (error) {
      if (!isAborted(signal)) throw error;
      await this.#end(starting);
      throw cancelled(signal);
    }
  }

  /** Ends what runs in the context; its variables stay. */
  async interrupt(options: CallOptions = {}): Promise<void> {
    await this.#change("interruptContext", options);
  }

  /** Begins anew, without variables. */
  async restart(options: CallOptions = {}): Promise<void> {
    await this.#change("restartContext", options);
  }

  /** Ends the context. */
  async remove(options: CallOptions = {}): Promise<void> {
    await this.#change("removeContext", options);
  }

  /** Interrupts code that its caller no longer wants, and waits for its end a moment, so that the next piece is not meant. */
  async #end(starting: Promise<CodeExecution>): Promise<void> {
    const over = new AbortController();
    const ending = starting.then(async ({ id }) => {
      const ended = this.#follow(id, undefined, over.signal)
        .catch(() => undefined)
        .finally(() => over.abort());
      // A kernel that has not begun with the code yet does not notice.
      while (!over.signal.aborted) {
        await this.interrupt();
        await pause(INTERRUPT_AGAIN_MS, over.signal);
      }
      await ended;
    });
    const isEnough = pause(LONGEST_END_MS, over.signal).finally(() => over.abort());
    await Promise.race([ending.catch(() => undefined), isEnough]);
  }

  async #follow(id: string, hear: CodeOptions["onOutput"], caller: AbortSignal | undefined): Promise<CodeResult> {
    const leaving = new AbortController();
    const signal = caller === undefined ? leaving.signal : AbortSignal.any([caller, leaving.signal]);
    const outputs: CodeOutput[] = [];
    let ended: Ended | undefined;
    try {
      for await (const event of (await this.#connection.client()).executionEvents(this.#sandbox, id, signal)) {
        if (event.type === "ended") ended = event.execution;
        else {
          join(outputs, event.output);
          hear?.(event.output);
        }
      }
    } finally {
      leaving.abort();
    }
    if (isAborted(caller)) throw cancelled(caller);
    // A stream that ends without a word is that of a server that ends: the next one does not know the execution, and says so.
    return resultOf(ended ?? (await this.#connection.call("inspectExecution", { sandbox: this.#sandbox, execution: id })), outputs);
  }

  async #change(name: "interruptContext" | "restartContext" | "removeContext", options: CallOptions): Promise<void> {
    const { signal, ...rest } = options;
    await this.#connection.call(name, { sandbox: this.#sandbox, context: this.name, ...rest }, signal);
  }
}

function isAborted(signal: AbortSignal | undefined): signal is AbortSignal {
  return signal?.aborted === true;
}

async function orCancelled<Value>(work: Promise<Value>, signal: AbortSignal | undefined): Promise<Value> {
  if (signal === undefined) return work;
  let leave: () => void = () => undefined;
  const aborted = new Promise<never>((_, reject) => {
    leave = () => reject(cancelled(signal));
    signal.addEventListener("abort", leave, { once: true });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener("abort", leave);
  }
}

/** Neighbours of one stream become one output. */
function join(outputs: CodeOutput[], output: CodeOutput): void {
  const last = outputs.at(-1);
  const isSame = last !== undefined && "text" in last && "text" in output && last.kind === output.kind;
  if (isSame) outputs[outputs.length - 1] = { kind: last.kind, text: last.text + output.text };
  else outputs.push(output);
}

function resultOf({ state, reason, droppedBytes }: Ended, outputs: readonly CodeOutput[]): CodeResult {
  const printed = (kind: string): string => outputs.map((output) => ("text" in output && output.kind === kind ? output.text : "")).join("");
  const shown = outputs.flatMap((output) => ("data" in output ? [output] : []));
  const data = shown.findLast(({ kind }) => kind === "result")?.data ?? {};
  const raised = outputs.findLast((output) => output.kind === "error");
  const plain = data["text/plain"];
  return {
    state: state === "running" ? "failed" : state,
    reason,
    stdout: printed("stdout"),
    stderr: printed("stderr"),
    text: typeof plain === "string" ? plain : null,
    data,
    pictures: shown.flatMap((output) => pictureOf(output.data) ?? []),
    error: raised === undefined ? null : { name: raised.name, value: raised.value, traceback: raised.traceback },
    outputs,
    droppedBytes,
  };
}

/** The first form that is a picture; what says that it is one and is not is left out. */
function pictureOf(data: { readonly [type: string]: Json }): Picture | undefined {
  for (const type of ["image/png", "image/jpeg", "image/gif", "image/webp", "image/svg+xml"]) {
    const content = data[type];
    if (typeof content !== "string") continue;
    if (type === "image/svg+xml") return { type, data: new TextEncoder().encode(content) };
    try {
      return { type, data: Uint8Array.from(atob(content.replaceAll(/\s/g, "")), (character) => character.charCodeAt(0)) };
    } catch {
      return undefined;
    }
  }
  return undefined;
}
