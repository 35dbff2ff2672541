/** Code that is given to be run: kept, queued, run in a sandbox each, and told about (TASK-1 to 3). */
import { createHash, randomUUID } from "node:crypto";
import { errorText } from "../../base/host/log.ts";
import { VivError } from "../../base/schema/errors.ts";
import { Job, type JobDetail, type JobOutput, type JobState, type JobStatus, type ScheduleInput } from "../../base/schema/job.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { JobRow } from "../../base/store/rows.ts";
import type { Change } from "../../base/store/store.ts";
import { refuseWider } from "../../sandbox/permissions/networks.ts";
import { openProject } from "../../sandbox/projects/projects.ts";
import { effectiveLimits } from "../../sandbox/start/admission.ts";
import type { Parts } from "../../sandbox/shared/parts.ts";
import { EndedJobs } from "./ended-jobs.ts";
import { JobRun, SANDBOX_KEY, type JobRunParts } from "./job-run.ts";
import { listenTo } from "./listening.ts";
import { heardOutput, sentOutput, shownOutput } from "./job-text.ts";
import { refuseUnsupported } from "./languages.ts";
import { WaitingJobs } from "./waiting-jobs.ts";

export interface JobsParts extends JobRunParts {
  readonly parts: JobRunParts["parts"] & Pick<Parts, "user" | "state">;
  /** Jobs at once. */
  readonly parallel: number;
}

/** Rows that one change removes. */
const REMOVED_AT_ONCE = 100;
const TITLE_CHARACTERS = 80;

export class Jobs {
  readonly #all: JobsParts;
  readonly #waiting = new WaitingJobs();
  readonly #runs = new Map<string, JobRun>();
  readonly #works = new Set<Promise<void>>();
  readonly #ended = new EndedJobs();
  /** For listeners of jobs that wait. */
  readonly #turns = new Map<string, PromiseWithResolvers<void>>();
  #sequence = 0;
  #isClosed = false;

  constructor(all: JobsParts) {
    this.#all = all;
  }

  async schedule(input: ScheduleInput): Promise<{ job_id: string }> {
    refuseUnsupported(input.kind);
    const project = await this.#project(input);
    if (this.#waiting.size >= LIMITS.waitingJobs)
      throw new VivError("no_capacity", `${this.#waiting.size} jobs wait already.`, {
        remedy: "Wait until some have ended, then try again.",
      });
    const row = this.#rowOf(input, project);
    const { id, isNew } = await this.#all.parts.store.change((change) => add(change, row, input.code));
    this.#all.parts.reach("job.queued");
    if (isNew) {
      this.#waiting.add(row);
      this.#dispatch();
    }
    return { job_id: id };
  }

  /** Its path; null for an empty workspace. What would be refused later is refused now. */
  async #project({ project, limits, network }: ScheduleInput): Promise<string | null> {
    const { store, state, user } = this.#all.parts;
    refuseWider(network, user.network);
    const view = project === undefined ? undefined : await openProject(store, project, state);
    if (view !== undefined && view.untrusted.length > 0)
      throw new VivError("untrusted_config", `The vivarium.json of ${view.row.path} is not trusted: ${view.untrusted.join(", ")}.`);
    const asked = { cpus: limits?.cpus, memoryBytes: limits?.memory_bytes, diskBytes: limits?.disk_bytes, processes: limits?.processes };
    effectiveLimits(asked, { limits: view?.config.limits ?? {} }, user);
    return view?.row.path ?? null;
  }

  #rowOf({ code, ...input }: ScheduleInput, project: string | null): JobRow {
    return {
      id: randomUUID(),
      kind: input.kind,
      state: "queued",
      project,
      priority: input.priority,
      title: titleOf(code),
      sandbox: null,
      sandboxKept: input.keep_sandbox,
      network: input.network ?? null,
      timeoutMs: Math.round(input.timeout_seconds * 1000),
      createdAt: new Date().toISOString(),
      startedAt: null,
      endedAt: null,
      exitCode: null,
      cause: null,
      reason: null,
      droppedBytes: 0,
      sequence: (this.#sequence += 1),
      input,
      command: null,
      idempotencyKey: input.idempotency_key ?? null,
      fingerprint: createHash("sha256")
        .update(JSON.stringify([input, project, code]))
        .digest("hex"),
      textBytes: Buffer.byteLength(code),
    };
  }

  /** While it runs, nothing is read from the disk. */
  async status(id: string): Promise<JobStatus> {
    const run = this.#runs.get(id);
    if (run !== undefined) return { state: run.row.state, ...run.text.shown() };
    const { state } = await this.#row(id);
    return { state, ...shownOutput((await this.#all.parts.store.jobTexts.get(id))?.output) };
  }

  async list({ state, project, limit }: { state?: JobState | undefined; project?: string | undefined; limit: number }): Promise<Job[]> {
    return (await this.#all.parts.store.jobs.list({ state, project }, { limit })).map(shown);
  }

  async inspect(id: string): Promise<JobDetail> {
    const row = await this.#row(id);
    const code = (await this.#all.parts.store.jobTexts.get(id))?.code ?? "";
    const { stdout, stderr } = await this.status(id);
    return { ...shown(this.#runs.get(id)?.row ?? row), code, stdout, stderr };
  }

  /** Its output from the beginning on, as far as it is kept, then how it ended. */
  async output(id: string, signal: AbortSignal): Promise<AsyncIterable<JobOutput>> {
    await this.#row(id);
    return this.#outputOf(id, signal);
  }

  async *#outputOf(id: string, signal: AbortSignal): AsyncGenerator<JobOutput, void, void> {
    const run = await this.#coming(id, signal);
    if (run === undefined) for (const chunk of heardOutput((await this.#all.parts.store.jobTexts.get(id))?.output)) yield sentOutput(chunk);
    else for await (const chunk of listenTo(run, signal)) yield sentOutput(chunk);
    if (signal.aborted) return;
    const row = run?.row ?? (await this.#row(id));
    // Where this server stops, the next one tells how it ended.
    if (row.endedAt !== null) yield { ended: shown(row) };
  }

  async cancel(id: string): Promise<Job> {
    const waiting = this.#waiting.take(id);
    const run = waiting === undefined ? this.#runs.get(id) : this.#take(waiting);
    if (run === undefined) return shown(await this.#row(id));
    run.cancel();
    // Without a sandbox: it only writes down how it ended.
    if (waiting !== undefined) this.#begin(run);
    await run.ended;
    return shown(run.row);
  }

  /** After a start of the server: what ran is taken over, what waited waits on. */
  async resume(): Promise<void> {
    const { store } = this.#all.parts;
    const rows = (await store.jobs.list()).toReversed();
    this.#sequence = rows.at(-1)?.sequence ?? 0;
    for (const row of rows) {
      if (row.state === "queued") this.#waiting.add(row);
      else if (row.state === "running") this.#take(row);
      else this.#ended.add(row);
    }
    // Those of jobs that wait hold nothing yet, and may be half gone.
    await this.sweep();
    for (const run of this.#runs.values()) this.#begin(run);
    this.#dispatch();
  }

  /** Removes sandboxes that should have gone with their job, and jobs that are kept no longer. */
  async sweep(): Promise<void> {
    const { store, log } = this.#all.parts;
    const left = (await store.sandboxes.list()).filter(
      ({ idempotencyKey: key, removing }) => key?.startsWith(SANDBOX_KEY) === true && !removing,
    );
    for (const { id, idempotencyKey } of left) {
      if (this.#runs.has(idempotencyKey?.slice(SANDBOX_KEY.length) ?? "")) continue;
      await this.#all.sandboxes
        .remove(id)
        .catch((error: unknown) =>
          log.warn("the sandbox of a job that has ended was not removed", { sandbox: id, error: errorText(error) }),
        );
    }
    await this.#trim();
  }

  async #trim(): Promise<void> {
    for (let surplus = this.#ended.takeSurplus(REMOVED_AT_ONCE); surplus.length > 0; surplus = this.#ended.takeSurplus(REMOVED_AT_ONCE)) {
      const ids = surplus;
      await this.#all.parts.store.change(async (change) => {
        for (const id of ids) await change.jobs.remove(id);
      });
    }
  }

  /** What runs goes on, for the next server. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const run of this.#runs.values()) run.close();
    await Promise.all(this.#works);
  }

  #dispatch(): void {
    while (this.#runs.size < this.#all.parallel && !this.#isClosed) {
      const row = this.#waiting.next();
      if (row === undefined) return;
      this.#begin(this.#take(row));
    }
  }

  #take(row: JobRow): JobRun {
    const run = new JobRun(this.#all, row);
    this.#runs.set(row.id, run);
    this.#turns.get(row.id)?.resolve();
    this.#turns.delete(row.id);
    return run;
  }

  #begin(run: JobRun): void {
    const { id } = run.row;
    const work = run
      .work()
      .catch((error: unknown) => this.#all.parts.log.warn("a job was left to the next server", { job: id, error: errorText(error) }))
      .then(() => this.#over(run))
      .finally(() => this.#works.delete(work));
    this.#works.add(work);
  }

  async #over({ row }: JobRun): Promise<void> {
    this.#runs.delete(row.id);
    this.#dispatch();
    if (row.endedAt === null || this.#isClosed) return;
    this.#ended.add(row);
    await this.#trim().catch((error: unknown) => this.#all.parts.log.warn("old jobs were not removed", { error: errorText(error) }));
  }

  /** The run of a job that has its turn, or will have it. */
  async #coming(id: string, signal: AbortSignal): Promise<JobRun | undefined> {
    if (!this.#waiting.has(id)) return this.#runs.get(id);
    const turn = this.#turns.get(id) ?? Promise.withResolvers<void>();
    this.#turns.set(id, turn);
    const aborted = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    if (!signal.aborted) await Promise.race([turn.promise, aborted]);
    return this.#runs.get(id);
  }

  async #row(id: string): Promise<JobRow> {
    const row = await this.#all.parts.store.jobs.get(id);
    if (row !== undefined) return row;
    throw new VivError("not_found", `There is no job ${id}.`, { remedy: "Look at `viv jobs`; jobs that ended long ago are removed." });
  }
}

/** Adds a job, unless there is one with its key. */
async function add(change: Change, row: JobRow, code: string): Promise<{ id: string; isNew: boolean }> {
  const key = row.idempotencyKey;
  const known = key === null ? undefined : await change.jobs.find({ idempotencyKey: key });
  if (known !== undefined) {
    if (known.fingerprint === row.fingerprint) return { id: known.id, isNew: false };
    throw new VivError("key_reused", `The idempotency key ${JSON.stringify(key)} belongs to another request, that of job ${known.id}.`);
  }
  await change.jobs.put(row);
  await change.jobTexts.put({ id: row.id, code });
  await change.event("job.queued", null, { job: row.id, kind: row.kind });
  return { id: row.id, isNew: true };
}

function titleOf(code: string): string {
  const line = code.split("\n", 20).find((each) => /\w/.test(each) && !each.startsWith("#!")) ?? "";
  return line.trim().slice(0, TITLE_CHARACTERS);
}

/** What the API shows of a row: the schema drops what is the server's own. */
function shown(row: JobRow): Job {
  return Job.parse(row);
}
