/** The way of one attempt: a clone, its command, a frozen state, and the checks in a fresh fork of that. */
import { errorText } from "../../base/host/log.ts";
import type { CommandEnd } from "../../base/schema/command.ts";
import { VivError } from "../../base/schema/errors.ts";
import type { Attempt } from "../../base/schema/experiment.ts";
import { decodePath } from "../../base/schema/path-bytes.ts";
import type { Parts } from "../../sandbox/shared/parts.ts";
import type { Sandboxes } from "../../sandbox/sandboxes.ts";
import type { LaunchAhead } from "../../sandbox/start/launches-ahead.ts";
import type { SandboxRow } from "../../base/store/rows.ts";
import { openChange, type OpeningChange } from "./change.ts";
import type { Clones } from "../checks/clones.ts";
import type { Runs } from "../agents/runs.ts";
import { commandTimeoutMs, checkSettings } from "./input.ts";
import type { Journal } from "./journal.ts";
import { lastWords, runLine, tailOf, type LineEnd } from "../checks/line.ts";
import { mayTouchProtected, splitChange } from "../checks/manifest.ts";
import { isTestConfiguration, protectionOf, steersChecks } from "../checks/protection.ts";
import { ADDS_CONFIGURATION, ONLY_PROTECTED, STEERS_CHECKS } from "./ranking.ts";
import type { SharedFolderWatch } from "./shared-folder-watch.ts";
import { byFolder, shortened, sideChanges } from "./side-changes.ts";
import type { Verification } from "../checks/verification.ts";

/** What attempts work with. */
export interface ExperimentParts {
  readonly parts: Pick<Parts, "store" | "backends" | "user" | "state" | "log" | "egress" | "live" | "reach">;
  readonly sandboxes: Sandboxes;
  readonly clones: Clones;
  readonly verification: Verification;
  readonly temporary: string;
  readonly runs: Runs;
}

/** How an experiment is ended from outside. */
export interface ExperimentSignals {
  /** Asks commands to end and keeps what they did. */
  readonly cancel: AbortSignal;
  /** Ends everything now. */
  readonly kill: AbortSignal;
}

/** Of a dollar. */
const MICRO = 1_000_000;
const OUTPUT_CHARACTERS = 16 * 1024;
const MOST_RERUNS = 2;

/** How an attempt's start goes along with that of others. */
export interface AttemptStart {
  /** To be called when its command runs. */
  readonly hasBegun: () => void;
  /** Resolves when all that were started together run: what they need later has time until then. */
  readonly allBegun: Promise<void>;
}

export class AttemptRun {
  readonly #all: ExperimentParts;
  readonly #journal: Journal;
  readonly #index: number;
  readonly #ends: ExperimentSignals;
  readonly #shared: SharedFolderWatch;
  readonly #start: AttemptStart;
  /** For the fork in which it is judged: none, until its command runs, and from when that fork is made. */
  #ahead: { launch?: LaunchAhead | undefined } | undefined;

  constructor(
    all: ExperimentParts,
    journal: Journal,
    index: number,
    ends: ExperimentSignals,
    shared: SharedFolderWatch,
    start: AttemptStart,
  ) {
    this.#all = all;
    this.#shared = shared;
    this.#start = start;
    this.#journal = journal;
    this.#index = index;
    this.#ends = ends;
  }

  /** To its end, whatever that is; an attempt that has a frozen state goes on from there. */
  async run(): Promise<void> {
    try {
      while (!(await this.#once())) await this.#beginAgain("A folder that is shared live with reality moved while it ran.");
    } catch (error) {
      if (this.#ends.kill.aborted || this.#ends.cancel.aborted) this.#end("cancelled", "It was cancelled.");
      else this.#end("failed", errorText(error));
    } finally {
      this.#takeAhead()?.drop();
    }
    this.#all.parts.reach("experiment.attempt");
  }

  get #now(): Attempt {
    return this.#journal.attempt(this.#index);
  }

  #change(patch: Partial<Attempt>): void {
    this.#journal.changeAttempt(this.#index, patch);
  }

  #end(state: "done" | "failed" | "cancelled", reason: string | null): void {
    this.#change({ state, reason, endedAt: new Date().toISOString() });
  }

  /** False if shared folders moved under it and it is to be run again. */
  async #once(): Promise<boolean> {
    const { origin } = this.#journal.row;
    if (origin === null) throw new VivError("internal", "The experiment has no frozen reality to start from.");
    if (this.#now.snapshot === null) {
      const [before, row] = await Promise.all([this.#shared.mark(), this.#place(origin)]);
      await (this.#now.run == null ? this.#command(row) : this.#agent(row, this.#now.run));
      if (!(await this.#freeze(row, before))) return false;
    }
    if (this.#ends.cancel.aborted) this.#end("cancelled", "It was cancelled; the state it left is kept.");
    else await this.#judge();
    return true;
  }

  /** A clone of its own; an agent that goes on without a server has one already. */
  async #place(origin: { sandbox: string; snapshot: string }): Promise<SandboxRow> {
    const { sandbox, run } = this.#now;
    return run == null || sandbox === null ? this.#clone(origin) : this.#all.sandboxes.find(sandbox);
  }

  async #clone({ sandbox, snapshot }: { sandbox: string; snapshot: string }): Promise<SandboxRow> {
    const { clones, parts } = this.#all;
    this.#change({ state: "cloning", startedAt: new Date().toISOString() });
    const labels = clones.labels(this.#journal.row.id, `attempt-${this.#index}`);
    const onWait = (reason: string): void => this.#change({ state: "queued", reason });
    const row = await clones.fork(sandbox, snapshot, labels, this.#ends.cancel, { onWait });
    parts.reach("experiment.cloned");
    this.#change({ state: "running", reason: null, sandbox: row.id });
    return row;
  }

  async #command(row: SandboxRow): Promise<void> {
    const { sandboxes } = this.#all;
    const { cancel, kill } = this.#ends;
    const ended = await runLine(sandboxes.commands, row, this.#now.command, {
      cwd: this.#journal.row.input.cwd,
      timeoutMs: commandTimeoutMs(this.#journal.row),
      stop: cancel,
      kill,
      onRunning: () => this.#hasBegun(row),
    });
    await this.#ran(row, ended.end, {
      exitCode: ended.end.exitCode,
      reason: endOf(ended),
      output: tailOf(ended.output, OUTPUT_CHARACTERS),
    });
  }

  #hasBegun(row: SandboxRow): void {
    this.#start.hasBegun();
    if (this.#isJudged && this.#ahead === undefined) void this.#launchAhead(row, (this.#ahead = {}));
  }

  /** Once the others run, too, the fork in which it is judged is launched, as far as that goes without the files. */
  async #launchAhead({ id }: SandboxRow, place: { launch?: LaunchAhead | undefined }): Promise<void> {
    await this.#start.allBegun;
    if (this.#ahead !== place) return;
    const launch = await this.#all.clones.ahead(id);
    if (this.#ahead === place) place.launch = launch;
    else launch?.drop();
  }

  /** What there is of it now: the fork does not wait for it. */
  #takeAhead(): LaunchAhead | undefined {
    const launch = this.#ahead?.launch;
    this.#ahead = undefined;
    return launch;
  }

  get #isJudged(): boolean {
    const { checks, measure } = checkSettings(this.#journal.row, "left");
    return checks.length > 0 || measure !== null;
  }

  async #agent(row: SandboxRow, run: string): Promise<void> {
    this.#start.hasBegun();
    const { outcome, reason, command } = await this.#all.runs.work(run, row, this.#journal.row.protect, this.#ends);
    const { text } = await this.#all.runs.lastWords(run);
    await this.#ran(row, command, {
      exitCode: outcome === "done" ? 0 : command.exitCode || 1,
      reason,
      output: tailOf(text, OUTPUT_CHARACTERS),
    });
  }

  /** Its command or agent has ended. */
  async #ran(row: SandboxRow, end: CommandEnd, came: Pick<Attempt, "exitCode" | "reason" | "output">): Promise<void> {
    const { parts } = this.#all;
    const { kill } = this.#ends;
    const use = await parts.live.get(row.id)?.walls.usage();
    const { sentBytes, receivedBytes } = parts.egress.use(row.id);
    const cost = await this.#cost(row);
    this.#change({
      state: "freezing",
      ...came,
      wallMs: end.wallMs,
      cpuMs: use?.cpuMs ?? end.cpuMs,
      peakMemoryBytes: use?.peakMemoryBytes ?? null,
      networkBytes: row.walled ? sentBytes + receivedBytes : null,
      cost,
    });
    parts.reach("experiment.ran");
    if (kill.aborted) throw new VivError("cancelled", "It was cancelled.");
  }

  /** Of its requests to models, and of those that it asked; null where there were none. */
  async #cost({ id }: SandboxRow): Promise<number | null> {
    const requests = await this.#all.parts.store.usage.list({ sandbox: id });
    const own = requests.reduce((sum, { microDollars }) => sum + microDollars, 0) / MICRO;
    const { run } = this.#now;
    const all = run == null ? own : await this.#all.runs.spent(await this.#all.runs.row(run));
    return requests.length === 0 && all === 0 ? null : all;
  }

  /** False if what it read of shared folders was not one state. */
  async #freeze(row: SandboxRow, before: string): Promise<boolean> {
    const { sandboxes, parts } = this.#all;
    const [{ id }, after] = await Promise.all([sandboxes.snapshot(row.id, undefined), this.#shared.mark()]);
    const moved = before !== after;
    if (moved && this.#now.reruns < MOST_RERUNS && !this.#ends.cancel.aborted) return false;
    if (moved) this.#flag("A folder that is shared live with reality kept moving while it ran.");
    this.#change({ snapshot: id });
    parts.reach("experiment.frozen");
    return true;
  }

  async #beginAgain(why: string): Promise<void> {
    const { sandbox, reruns } = this.#now;
    if (sandbox !== null) this.#all.clones.discard(sandbox);
    this.#change({ sandbox: null, reruns: reruns + 1, reason: why });
  }

  #flag(text: string): void {
    if (!this.#now.flags.includes(text)) this.#change({ flags: [...this.#now.flags, text] });
  }

  /** Checks in a fresh fork of the frozen state: of the attempt's processes and environment nothing is there. */
  async #judge(): Promise<void> {
    const { parts, sandboxes, clones, verification, temporary } = this.#all;
    const { kill, cancel } = this.#ends;
    const { sandbox, snapshot } = this.#now;
    if (sandbox === null || snapshot === null) throw new VivError("internal", "The attempt has no frozen state.");
    this.#change({ state: "checking" });
    const row = await sandboxes.find(sandbox);
    const experiment = this.#journal.row;
    const over = new AbortController();
    const signal = AbortSignal.any([kill, cancel, over.signal]);
    const opening = openChange(parts, row, snapshot, experiment, temporary);
    const labels = clones.labels(experiment.id, `checks-${this.#index}`);
    const how = checkSettings(experiment, "left");
    try {
      const checked = this.#isJudged
        ? verification.passes(
            () => clones.fork(sandbox, snapshot, labels, signal, { ahead: this.#takeAhead() }),
            (fork) => this.#putBack(fork, opening),
            how,
            signal,
          )
        : Promise.resolve({ passed: true, checks: [], measure: null, setup: null });
      checked.catch(() => undefined);
      await this.#tell(row, snapshot, opening.change);
      this.#change({ checked: await checked });
    } finally {
      // Checks are not run for a change that can't be read.
      over.abort();
      opening.close();
    }
    this.#finish();
  }

  #finish(): void {
    const { exitCode, reason, checked } = this.#now;
    if (checked?.checks.some(({ flaky }) => flaky) === true) this.#flag("A check passes only at times.");
    if (exitCode === 0 || this.#journal.row.input.ignoreExit) this.#end("done", exitCode === 0 ? null : reason);
    else this.#end("failed", reason);
  }

  /** Does not wait where only paths differ that are not protected. */
  async #putBack(fork: SandboxRow, opening: OpeningChange): Promise<void> {
    const { protect } = this.#journal.row;
    if (!mayTouchProtected(await opening.touched, protect)) return;
    const change = await opening.change;
    const { putBack } = await splitChange(change, protect);
    if (putBack.length > 0) await this.#all.verification.apply(fork, putBack, await change.contents(putBack));
  }

  /** What it changed, while the checks run. */
  async #tell(row: SandboxRow, snapshot: string, opening: OpeningChange["change"]): Promise<void> {
    const outside = sideChanges(this.#all.parts, row, snapshot, this.#all.temporary);
    outside.catch(() => undefined);
    const change = await opening;
    const protection = protectionOf(this.#journal.row.protect);
    const { free, changed } = await splitChange(change, this.#journal.row.protect);
    const special = change.leftOut.filter(({ why }) => why === "special").map(({ path }) => decodePath(path));
    const left = special.filter((path) => protection.protects(path, false));
    this.#change({
      diff: await change.diff(),
      protectedChanged: [...changed, ...left].toSorted(),
      sideChanges: shortened([...byFolder(change.leftOut), ...(await outside)]),
    });
    if (change.changes.length > 0 && free.length === 0) this.#flag(ONLY_PROTECTED);
    const added = change.changes.filter(({ path, old }) => old === null && isTestConfiguration(decodePath(path)));
    for (const { path } of added.slice(0, 5)) this.#flag(`${ADDS_CONFIGURATION}${decodePath(path)}.`);
    const steering = free.filter(({ path }) => steersChecks(decodePath(path)));
    for (const { path } of steering.slice(0, 5)) this.#flag(`${STEERS_CHECKS}${decodePath(path)}.`);
  }
}

/** Why a command that failed did, with its last words; null for one that did well. */
function endOf(ended: LineEnd): string | null {
  const { exitCode, message } = ended.end;
  if (exitCode === 0) return message;
  const sentence = message ?? `Its command ended with ${exitCode}.`;
  const said = lastWords(ended);
  return said === undefined ? sentence : `${sentence.replace(/\.$/, "")}: ${said}`;
}
