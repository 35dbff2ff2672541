/**
 * The face of this folder: code that runs piece by piece, with what the pieces before left. A context is a kernel of the Jupyter inside;
 * which there are is asked of Jupyter. Executions are this server's: the next one does not know them, but the contexts keep their variables.
 */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import type { WebSocket } from "ws";
import { errorText } from "../../base/host/log.ts";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { CodeContext, Execution, ExecutionEvent } from "../../base/schema/notebook.ts";
import type { SandboxRow } from "../../base/store/rows.ts";
import type { Commands } from "../commands/commands.ts";
import type { Parts } from "../shared/parts.ts";
import { requireLive } from "../shared/state.ts";
import { Jupyter } from "./jupyter.ts";
import { executeRequest, newsIn, signOfLife } from "./kernel-messages.ts";
import { RunningCode } from "./running-code.ts";

/** A connection to the kernel of a context. */
interface Channel {
  readonly socket: WebSocket;
  readonly kernel: string;
  /** Which start of the kernel answered last. */
  start: string | undefined;
}

/** How often a kernel that runs code is asked whether it is still the same one: Jupyter does not always tell. */
const SIGN_OF_LIFE_MS = 3_000;

export class Notebooks {
  readonly #parts: Pick<Parts, "store" | "live" | "locks" | "log">;
  readonly #jupyter: Jupyter;
  /** By sandbox and context. */
  readonly #channels = new Map<string, Channel>();
  /** By sandbox, then by id; the oldest that have ended go first. */
  readonly #executions = new Map<string, Map<string, RunningCode>>();

  constructor(parts: Pick<Parts, "store" | "live" | "locks" | "log">, commands: Commands) {
    this.#parts = parts;
    this.#jupyter = new Jupyter(parts, commands);
  }

  async execute(
    row: SandboxRow,
    { context, code, background, timeout }: { context: string; code: string; background: boolean; timeout?: number | undefined },
    signal: AbortSignal,
  ): Promise<Execution> {
    requireLive(row);
    await this.#jupyter.open(row);
    const running = new RunningCode(randomUUID(), { sandbox: row.id, context });
    this.#remember(row, running);
    const { socket } = await this.#channel(row, context).catch((error: unknown) => {
      running.fail("It did not begin.");
      throw error;
    });
    const use = this.#parts.live.require(row).uses.begin(`code in context ${context}`);
    void running.ended.finally(use);
    socket.send(executeRequest(running.id, code));
    const signs = setInterval(() => socket.readyState === socket.OPEN && socket.send(signOfLife()), SIGN_OF_LIFE_MS);
    void running.ended.finally(() => clearInterval(signs));
    this.#limit(row, running, timeout);
    if (background) return running.shown();
    // A caller that goes away leaves its code running, as a notebook does.
    await Promise.race([running.ended, once(signal, "abort").catch(() => undefined)]);
    return running.shown();
  }

  inspect(row: SandboxRow, id: string): Execution {
    return this.#find(row, id).shown();
  }

  events(row: SandboxRow, id: string, signal: AbortSignal): AsyncIterable<ExecutionEvent> {
    return this.#find(row, id).listen(signal);
  }

  async contexts(row: SandboxRow): Promise<CodeContext[]> {
    requireLive(row);
    if (!(await this.#jupyter.isOpen(row))) return [];
    return (await this.#jupyter.contexts(row)).map(({ name, language, state }) => ({ name, language, state }));
  }

  async interrupt(row: SandboxRow, name: string): Promise<void> {
    const { kernel } = await this.#context(row, name);
    for (const running of this.#running(row, name)) running.interrupted();
    await this.#jupyter.tellKernel(row, kernel, "interrupt");
  }

  async restart(row: SandboxRow, name: string): Promise<void> {
    const { kernel } = await this.#context(row, name);
    await this.#jupyter.tellKernel(row, kernel, "restart");
    this.#letGo(row, name, "The context was restarted.");
  }

  async remove(row: SandboxRow, name: string): Promise<void> {
    const { session } = await this.#context(row, name);
    await this.#jupyter.removeContext(row, session);
    this.#letGo(row, name, "The context was removed.");
  }

  closeAll(): void {
    for (const { socket } of this.#channels.values()) socket.terminate();
  }

  #limit(row: SandboxRow, running: RunningCode, timeout: number | undefined): void {
    if (timeout === undefined) return;
    const timer = setTimeout(() => {
      this.interrupt(row, running.context).catch((error: unknown) =>
        this.#parts.log.info("code not interrupted", { sandbox: row.id, error: errorText(error) }),
      );
    }, timeout);
    void running.ended.finally(() => clearTimeout(timer));
  }

  #running(row: SandboxRow, context: string): RunningCode[] {
    return [...(this.#executions.get(row.id)?.values() ?? [])].filter((one) => one.isUnderWay && one.context === context);
  }

  /** What is sent to a kernel that is about to begin may be lost: the next connection waits for it. */
  #letGo(row: SandboxRow, context: string, reason: string): void {
    const channel = this.#channels.get(key(row, context));
    this.#channels.delete(key(row, context));
    this.#failAll(row, context, reason);
    channel?.socket.terminate();
  }

  #failAll(row: SandboxRow, context: string, reason: string): void {
    for (const running of this.#running(row, context)) running.fail(reason);
  }

  #find(row: SandboxRow, id: string): RunningCode {
    const found = this.#executions.get(row.id)?.get(id);
    if (found === undefined)
      throw new VivError("not_found", `Sandbox ${row.name} has no execution ${id}, or this server does not know it any more.`);
    return found;
  }

  #remember(row: SandboxRow, running: RunningCode): void {
    const all = this.#executions.get(row.id) ?? new Map<string, RunningCode>();
    for (const id of this.#executions.keys()) if (this.#parts.live.get(id) === undefined) this.#executions.delete(id);
    const oldest = [...all.values()].filter((one) => !one.isUnderWay).slice(0, Math.max(0, all.size + 1 - LIMITS.keptExecutions));
    for (const { id } of oldest) all.delete(id);
    if (all.size >= LIMITS.keptExecutions)
      throw new VivError("no_capacity", `${LIMITS.keptExecutions} pieces of code run in sandbox ${row.name} already.`, {
        remedy: "Wait for one to end, or interrupt its context.",
      });
    all.set(running.id, running);
    this.#executions.set(row.id, all);
  }

  async #context(row: SandboxRow, name: string): Promise<{ session: string; kernel: string }> {
    requireLive(row);
    const contexts = (await this.#jupyter.isOpen(row)) ? await this.#jupyter.contexts(row) : [];
    const found = contexts.find((context) => context.name === name);
    if (found === undefined) throw new VivError("not_found", `Sandbox ${row.name} has no context ${name}.`);
    return found;
  }

  /** One connection a context, made when it is first used. */
  async #channel(row: SandboxRow, name: string): Promise<Channel> {
    return this.#parts.locks.run(`context:${key(row, name)}`, async () => {
      const known = this.#channels.get(key(row, name));
      if (known !== undefined && known.socket.readyState === known.socket.OPEN) return known;
      const contexts = await this.#jupyter.contexts(row);
      if (!contexts.some((context) => context.name === name)) {
        if (contexts.length >= LIMITS.maxContexts)
          throw new VivError("no_capacity", `Sandbox ${row.name} has ${LIMITS.maxContexts} contexts, which is the most.`, {
            remedy: "Remove one first.",
          });
        await this.#jupyter.makeContext(row, name);
      }
      const { kernel } = await this.#context(row, name);
      const channel = { socket: await this.#jupyter.channels(row, kernel, `viv-${name}`), kernel, start: undefined };
      this.#follow(row, name, channel);
      await once(channel.socket, "open");
      channel.socket.send(signOfLife());
      this.#channels.set(key(row, name), channel);
      return channel;
    });
  }

  #follow(row: SandboxRow, name: string, channel: Channel): void {
    const { socket } = channel;
    socket.on("error", () => socket.terminate());
    socket.on("message", (data: Buffer, isBinary: boolean) => {
      const news = isBinary ? undefined : newsIn(data.toString("utf8"));
      if (news === undefined) return;
      if ("start" in news && (channel.start ??= news.start) === news.start) return undefined;
      if (!("died" in news) && !("start" in news)) return this.#executions.get(row.id)?.get(news.execution)?.hear(news);
      this.#letGo(row, name, "Its kernel ended, perhaps for want of memory; it begins anew.");
    });
    socket.once("close", () => {
      if (this.#channels.get(key(row, name))?.socket !== socket) return;
      this.#channels.delete(key(row, name));
      this.#failAll(row, name, "The connection to the context broke off.");
    });
  }
}

function key(row: SandboxRow, context: string): string {
  return `${row.id}/${context}`;
}
