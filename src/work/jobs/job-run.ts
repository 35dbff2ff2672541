/**
 * One job from its turn to its end. The code is a background command of a sandbox: it goes on while no server is there, and the next
 * server listens to it again. Each step is on disk before the next one begins, in this order:
 *
 * 1. The sandbox, under a key that only this job has. A job that comes no further waits again after a crash; its sandbox goes.
 * 2. The row says that the job runs, where, and as which command. From then on the code is never begun a second time: the next server
 *    starts the command only if process 1 of the sandbox says that it never was.
 * 3. The row says how it ended, with its output. Then the sandbox goes, unless it is kept.
 */
import { Readable } from "node:stream";
import { setTimeout as wait } from "node:timers/promises";
import { errorText } from "../../base/host/log.ts";
import { Patience } from "../../base/host/patience.ts";
import type { CommandEnd } from "../../base/schema/command.ts";
import { VivError } from "../../base/schema/errors.ts";
import { newId } from "../../base/schema/ids.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import { projectInside } from "../../base/schema/workspace.ts";
import type { JobRow, SandboxRow } from "../../base/store/rows.ts";
import type { StartOptions } from "../../sandbox/commands/exec-request.ts";
import type { CommandStream } from "../../sandbox/commands/stream.ts";
import type { Sandboxes } from "../../sandbox/sandboxes.ts";
import type { Parts } from "../../sandbox/shared/parts.ts";
import { JobText } from "./job-text.ts";
import { JOB_PATH, languageOf } from "./languages.ts";
import type { NodeRuntime } from "./node-runtime.ts";

export interface JobRunParts {
  readonly parts: Pick<Parts, "store" | "live" | "log" | "reach">;
  readonly sandboxes: Sandboxes;
  readonly node: NodeRuntime;
}

/** How a job ends that ends before its code does, or without it. */
type Ending = Pick<JobRow, "exitCode" | "cause" | "reason">;

/** Begins the key of every sandbox that goes with its job. */
export const SANDBOX_KEY = "job:";
const KEPT_SANDBOX_KEY = "kept-job:";

export class JobRun {
  readonly #all: JobRunParts;
  #row: JobRow;
  readonly text = new JobText();
  #stream: CommandStream | undefined;
  #isCancelled = false;
  #isClosed = false;
  readonly #patience: Patience;
  /** Ends waiting for room. */
  readonly #stopping = new AbortController();
  /** Rejected when this server lets go of the job. */
  readonly #closed = Promise.withResolvers<never>();
  /** Resolves when the row says how it ended; rejects where this server can't say. */
  readonly #ended = Promise.withResolvers<void>();

  constructor(all: JobRunParts, row: JobRow) {
    this.#all = all;
    this.#row = row;
    this.#patience = new Patience(all.parts.log, { job: row.id });
    for (const { promise } of [this.#closed, this.#ended]) (promise as Promise<unknown>).catch(() => undefined);
  }

  get row(): JobRow {
    return this.#row;
  }

  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  /** Until it has ended and its sandbox is gone, or this server lets go of it. */
  async work(): Promise<void> {
    const ending = await this.#run().catch((error: unknown) => this.#failure(error));
    if (this.#isClosed) return;
    try {
      await this.#end(ending);
    } catch (error) {
      this.#ended.reject(error);
      throw error;
    }
    await this.#discard();
  }

  /** Ends it; `ended` says when that is done. */
  cancel(): void {
    this.#isCancelled = true;
    this.#stopping.abort();
    this.#stream?.signal("KILL");
  }

  /** Lets go of it: the code goes on, and the next server listens again. */
  close(): void {
    this.#isClosed = true;
    this.#stopping.abort();
    this.#patience.giveUp();
    const reason = new VivError("cancelled", "The server stops; the job goes on.");
    this.#closed.reject(reason);
    this.#ended.reject(reason);
  }

  async #run(): Promise<Ending> {
    const box = await (this.#row.state === "queued" ? this.#roomForSandbox() : this.#sandboxBefore());
    const stream = this.#row.state === "queued" ? await this.#choose(box) : await this.#again(box);
    this.#stream = stream;
    if (this.#isCancelled) this.cancel();
    await this.#listen(stream);
    return endingOf(await stream.end, this.#isCancelled);
  }

  /** Waits as long as the machine has no room. */
  async #roomForSandbox(): Promise<SandboxRow> {
    for (;;) {
      this.#stopIfAsked();
      try {
        return await this.#makeSandbox();
      } catch (error) {
        if (!(error instanceof VivError) || error.code !== "no_capacity") throw error;
      }
      await wait(LIMITS.jobAgainMs, undefined, { signal: this.#stopping.signal }).catch(() => undefined);
    }
  }

  /** The one with the key of this job, if there is one already. */
  async #makeSandbox(): Promise<SandboxRow> {
    const { id, project, input } = this.#row;
    const { limits = {}, network, keep_sandbox } = input;
    const { cpus, memory_bytes, disk_bytes, processes } = limits;
    const made = await this.#all.sandboxes.create({
      ...(project === null ? { empty: true } : { project }),
      env: { PATH: JOB_PATH, LANG: "C.UTF-8" },
      limits: { cpus, memoryBytes: memory_bytes, diskBytes: disk_bytes, processes },
      network,
      labels: { job: id },
      idempotencyKey: `${keep_sandbox ? KEPT_SANDBOX_KEY : SANDBOX_KEY}${id}`,
    });
    this.#change({ sandbox: made.id });
    this.#all.parts.reach("job.sandbox");
    this.#stopIfAsked();
    return this.#all.sandboxes.find(made.id);
  }

  /** That of a job which an earlier server began. */
  async #sandboxBefore(): Promise<SandboxRow> {
    const box = await this.#all.parts.store.sandboxes.get(this.#row.sandbox ?? "");
    if (box !== undefined && !box.removing) return box;
    throw new VivError("not_running", "The sandbox was removed while the job ran, and its output with it.");
  }

  async #choose(box: SandboxRow): Promise<CommandStream> {
    const command = newId("command");
    const write = this.#write({ state: "running", startedAt: new Date().toISOString(), command }, "job.running");
    const [options] = await Promise.all([this.#prepare(box, command), write]);
    this.#all.parts.reach("job.chosen");
    return this.#start(box, options);
  }

  async #start(box: SandboxRow, options: StartOptions): Promise<CommandStream> {
    this.#stopIfAsked();
    const stream = await this.#all.sandboxes.commands.start(box, options);
    this.#all.parts.reach("job.started");
    return stream;
  }

  /** The command of an earlier server. One that was never started is started; where that can't be known it is not. */
  async #again(box: SandboxRow): Promise<CommandStream> {
    const options = await this.#command(box, this.#row.command ?? "");
    const stream = await this.#all.sandboxes.commands.again(box, options);
    if (stream !== undefined) return stream;
    if (this.#all.parts.live.get(box.id) === undefined)
      throw new VivError(
        "not_running",
        "The sandbox ended while no server was there, perhaps after the code had begun; it is not run twice.",
      );
    return this.#start(box, await this.#prepare(box, options.id));
  }

  async #command(box: SandboxRow, id: string): Promise<StartOptions & { readonly id: string }> {
    const cwd = projectInside(box);
    const { command, env } = await languageOf(this.#row.kind).command({ path: this.#file, cwd }, this.#all.node);
    return { id, command, env: { ...env }, cwd, timeoutMs: this.#row.timeoutMs, onDisconnect: "keep" };
  }

  /** The command, with its code in place. */
  async #prepare(box: SandboxRow, id: string): Promise<StartOptions> {
    const { store, live } = this.#all.parts;
    const [options, text] = await Promise.all([this.#command(box, id), store.jobTexts.get(this.#row.id)]);
    const { desktop } = languageOf(this.#row.kind);
    if (desktop !== undefined) await this.#all.sandboxes.desktops.open(box, desktop);
    if (text === undefined) throw new VivError("internal", `The code of job ${this.#row.id} is gone.`);
    await live
      .require(box)
      .walls.files.write(this.#file, box.user, Readable.from([Buffer.from(text.code)]), { mode: 0o644, parents: true });
    return options;
  }

  /** Outside the project, where it would be part of the change. */
  get #file(): string {
    return `/tmp/job-${this.#row.id.slice(0, 8)}/${languageOf(this.#row.kind).file}`;
  }

  async #listen(stream: CommandStream): Promise<void> {
    const output = stream.output[Symbol.asyncIterator]();
    for (;;) {
      const next = await Promise.race([output.next(), this.#closed.promise]);
      if (next.done === true) return;
      this.text.add(next.value);
    }
  }

  #stopIfAsked(): void {
    if (this.#isClosed) throw new VivError("cancelled", "The server stops; the job goes on.");
    if (this.#isCancelled) throw new VivError("cancelled", CANCELLED);
  }

  #failure(error: unknown): Ending {
    if (this.#isCancelled) return { exitCode: null, cause: null, reason: CANCELLED };
    const { code, message, remedy } = VivError.from(error);
    if (code === "internal") this.#all.parts.log.warn("a job failed", { job: this.#row.id, error: errorText(error) });
    if (code === "command_not_found") return { exitCode: null, cause: null, reason: languageOf(this.#row.kind).missing };
    return { exitCode: null, cause: null, reason: code === "not_running" ? message : `${message} ${remedy}` };
  }

  async #end(ending: Ending): Promise<void> {
    if (ending.reason !== null) this.text.say(ending.reason);
    const state = ending.exitCode === 0 ? "succeeded" : "failed";
    const patch = { ...ending, state, endedAt: new Date().toISOString(), droppedBytes: this.text.droppedBytes } as const;
    // Until it is written the job counts as running, and the next server would find its end in the log.
    await this.#patience.until(() => this.#write(patch, `job.${state}`));
    this.#all.parts.reach("job.ended");
    this.#ended.resolve();
  }

  #change(patch: Partial<JobRow>): void {
    this.#row = { ...this.#row, ...patch };
  }

  /** With the output where it ends. The row in memory follows the one on disk. */
  async #write(patch: Partial<JobRow>, event: "job.running" | "job.succeeded" | "job.failed"): Promise<void> {
    const row = { ...this.#row, ...patch };
    const { id, kind, sandbox, exitCode, reason } = row;
    const isEnd = event !== "job.running";
    const written = await this.#all.parts.store.change(async (change) => {
      const text = isEnd ? await change.jobTexts.get(id) : undefined;
      const output = this.text.kept();
      const textBytes = row.textBytes + output.stdout.length + output.stderr.length;
      const now = isEnd ? { ...row, textBytes } : row;
      if (text !== undefined) await change.jobTexts.put({ ...text, output });
      await change.jobs.put(now);
      await change.event(event, sandbox, { job: id, kind, ...(isEnd ? { exitCode, reason } : {}) });
      return now;
    });
    this.#row = written;
  }

  async #discard(): Promise<void> {
    const { sandbox, sandboxKept, id } = this.#row;
    if (sandbox === null || sandboxKept) return;
    try {
      await this.#all.sandboxes.remove(sandbox);
    } catch (error) {
      if (error instanceof VivError && error.code === "not_found") return;
      this.#all.parts.log.warn("the sandbox of a job was not removed; it is tried again", { job: id, sandbox, error: errorText(error) });
    }
  }
}

const CANCELLED = "The job was cancelled.";

function endingOf({ exitCode, cause, message }: CommandEnd, cancelled: boolean): Ending {
  const reason = message === null ? null : message.replace("The command", "The code");
  return { exitCode, cause: cancelled ? "cancelled" : cause, reason: cancelled ? CANCELLED : reason };
}
