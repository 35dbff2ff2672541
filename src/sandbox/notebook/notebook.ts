/**
 * The face of this folder: code that runs piece by piece, with what the pieces before left. A context is a kernel of the Jupyter inside;
 * which there are is asked of Jupyter. Executions outlive the server: what it heard is in files, and Jupyter keeps what comes while no
 * server is there for the next one.
 */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import type { WebSocket } from "ws";
import { findLab } from "../../base/config/machine.ts";
import { runtimesFolder } from "../../base/config/paths.ts";
import { errorText } from "../../base/host/log.ts";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { CodeContext, Execution, ExecutionEvent } from "../../base/schema/notebook.ts";
import type { SandboxRow } from "../../base/store/rows.ts";
import type { Commands } from "../commands/commands.ts";
import type { Parts } from "../shared/parts.ts";
import { requireLive } from "../shared/state.ts";
import { ExecutionLogs } from "./execution-logs.ts";
import { Jupyter } from "./jupyter.ts";
import { LabFiles } from "./lab-files.ts";
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
  readonly #logs: ExecutionLogs;
  /** By sandbox and context. */
  readonly #channels = new Map<string, Channel>();
  /** By sandbox, then by id; the oldest that have ended go first. */
  readonly #executions = new Map<string, Map<string, RunningCode>>();
  /** Pieces that do nothing, by id: their end says that what was sent before them has ended. */
  readonly #markers = new Map<string, RunningCode>();

  constructor(parts: Pick<Parts, "store" | "live" | "locks" | "log" | "state">, commands: Commands) {
    this.#parts = parts;
    this.#logs = new ExecutionLogs(join(parts.state, "executions"));
    this.#jupyter = new Jupyter(parts, commands, new LabFiles(findLab(), runtimesFolder({ home: parts.state })));
  }

  async execute(
    row: SandboxRow,
    { context, code, background, timeout }: { context: string; code: string; background: boolean; timeout?: number | undefined },
    signal: AbortSignal,
  ): Promise<Execution> {
    requireLive(row);
    await this.#jupyter.open(row);
    const id = randomUUID();
    this.#makeRoom(row);
    const running = RunningCode.begin(id, { sandbox: row.id, context }, this.#logs.open(row.id, id));
    this.#of(row).set(id, running);
    const { socket } = await this.#connect(row, running);
    const use = this.#parts.live.require(row).uses.begin(`code in context ${context}`);
    void running.ended.finally(use);
    socket.send(executeRequest(running.id, code));
    this.#attend(row, running, socket);
    this.#limit(row, running, timeout);
    if (background) return running.shown();
    // A caller that goes away leaves its code running, as a notebook does.
    await Promise.race([running.ended, once(signal, "abort").catch(() => undefined)]);
    return running.shown();
  }

  /** Goes on with what an earlier server began. */
  async resume(): Promise<void> {
    for (const sandbox of this.#logs.sandboxes()) {
      const row = await this.#parts.store.sandboxes.get(sandbox);
      if (row === undefined) this.#logs.remove(sandbox);
      else this.#of(row);
    }
  }

  inspect(row: SandboxRow, id: string): Execution {
    return this.#find(row, id).shown();
  }

  events(row: SandboxRow, id: string, signal: AbortSignal): AsyncIterable<ExecutionEvent> {
    return this.#find(row, id).listen(signal);
  }

  /** Starts JupyterLab, if it does not run. */
  async openLab(row: SandboxRow): Promise<void> {
    requireLive(row);
    await this.#jupyter.open(row);
    await this.#jupyter.requireLab(row);
  }

  /** A connection to Jupyter, which must not have ended. */
  async dial(row: SandboxRow): Promise<Duplex> {
    requireLive(row);
    const leave = this.#parts.live.require(row).uses.begin("notebook page");
    try {
      const connection = await this.#jupyter.dial(row);
      connection.once("close", leave);
      if (connection.closed) leave();
      return connection;
    } catch (error) {
      leave();
      throw error;
    }
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

  /** Code goes on; the next server hears the rest. */
  closeAll(): void {
    const channels = [...this.#channels.values()];
    this.#channels.clear();
    for (const { socket } of channels) socket.terminate();
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
    const found = this.#of(row).get(id);
    if (found === undefined) throw new VivError("not_found", `Sandbox ${row.name} has no execution ${id}, or it is kept no more.`);
    return found;
  }

  /** The executions of a sandbox, also those of earlier servers. */
  #of(row: SandboxRow): Map<string, RunningCode> {
    const known = this.#executions.get(row.id);
    if (known !== undefined) return known;
    const all = new Map<string, RunningCode>();
    this.#executions.set(row.id, all);
    for (const kept of this.#logs.read(row.id)) {
      const { id } = kept.began;
      const code = RunningCode.kept(kept, kept.ended === undefined ? this.#logs.open(row.id, id) : undefined);
      all.set(id, code);
      if (!code.isUnderWay) continue;
      this.#goOn(row, code).catch((error: unknown) => code.fail(`The server was away, and the context is gone: ${errorText(error)}`));
    }
    return all;
  }

  /**
   * Jupyter tells first what it kept while no server was there. What the old server had not read when it was killed is lost: so a piece
   * that does nothing is run behind this one, and where that ends first, the end of this one was among what is lost.
   */
  async #goOn(row: SandboxRow, code: RunningCode): Promise<void> {
    if (this.#parts.live.get(row.id) === undefined || !(await this.#jupyter.isOpen(row)))
      return code.fail("The sandbox or its Jupyter ended.");
    await this.#context(row, code.context);
    const { socket } = await this.#connect(row, code);
    this.#attend(row, code, socket);
    const behind = new RunningCode(randomUUID(), { sandbox: row.id, context: code.context });
    this.#markers.set(behind.id, behind);
    void behind.ended.then(() => {
      this.#markers.delete(behind.id);
      code.fail("It ended while no server was there to hear how.");
    });
    void code.ended.then(() => behind.fail("no longer needed"));
    socket.send(executeRequest(behind.id, "", { silent: true }));
  }

  /** The connection to its context; where there can be none, the execution has failed. */
  async #connect(row: SandboxRow, running: RunningCode): Promise<Channel> {
    try {
      return await this.#channel(row, running.context);
    } catch (error) {
      running.fail(errorText(error));
      throw error;
    }
  }

  /** As long as it runs, the sandbox is in use, and its kernel is asked whether it is still the same one. */
  #attend(row: SandboxRow, running: RunningCode, socket: WebSocket): void {
    const use = this.#parts.live.require(row).uses.begin(`code in context ${running.context}`);
    const signs = setInterval(() => socket.readyState === socket.OPEN && socket.send(signOfLife()), SIGN_OF_LIFE_MS);
    void running.ended.finally(() => {
      use();
      clearInterval(signs);
    });
  }

  /** The oldest that have ended go first, and all of sandboxes that are no more. */
  #makeRoom(row: SandboxRow): void {
    for (const id of this.#executions.keys()) if (id !== row.id && this.#parts.live.get(id) === undefined) this.#executions.delete(id);
    const all = this.#of(row);
    let bytes = [...all.keys()].reduce((sum, id) => sum + this.#logs.bytes(row.id, id), 0);
    for (const { id } of [...all.values()].filter((one) => !one.isUnderWay)) {
      if (all.size < LIMITS.keptExecutions && bytes < LIMITS.keptExecutionBytes) break;
      bytes -= this.#logs.bytes(row.id, id);
      all.delete(id);
      this.#logs.remove(row.id, id);
    }
    if (all.size >= LIMITS.keptExecutions)
      throw new VivError("no_capacity", `${LIMITS.keptExecutions} pieces of code run in sandbox ${row.name} already.`, {
        remedy: "Wait for one to end, or interrupt its context.",
      });
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
      const channel: Channel = { socket: await this.#jupyter.channels(row, kernel, `viv-${name}`), kernel, start: undefined };
      this.#follow(row, name, channel);
      await once(channel.socket, "open");
      await untilAnswered(channel);
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
      if (!("died" in news) && !("start" in news))
        return (this.#executions.get(row.id)?.get(news.execution) ?? this.#markers.get(news.execution))?.hear(news);
      this.#letGo(row, name, "Its kernel ended, perhaps for want of memory; it begins anew.");
    });
    socket.once("close", () => {
      if (this.#channels.get(key(row, name))?.socket !== socket) return;
      this.#channels.delete(key(row, name));
      this.#failAll(row, name, "The connection to the context broke off.");
    });
  }
}

/** What is sent to a kernel that is just beginning is lost, so code waits until it has answered once. */
async function untilAnswered(channel: Channel): Promise<void> {
  const deadline = performance.now() + LIMITS.notebookAnswerMs;
  while (channel.start === undefined && channel.socket.readyState === channel.socket.OPEN && performance.now() < deadline) {
    channel.socket.send(signOfLife());
    for (let wait = 0; wait < 50 && channel.start === undefined; wait += 1) await delay(5);
  }
}

function key(row: SandboxRow, context: string): string {
  return `${row.id}/${context}`;
}
