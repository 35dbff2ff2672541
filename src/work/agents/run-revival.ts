/**
 * GRD-3: an agent whose program died in the midst of its work is followed by another one: at first in the same conversation and on the
 * state it left, then with the condensed conversation, at last on the last good snapshot. A minute apart, three in an hour, then the
 * run ends. Runs whose guardian may not step in end at the first death.
 */
import { errorText } from "../../base/host/log.ts";
import type { RunAgain } from "../../base/store/rows.ts";
import { lateRestarts, nextRestartAt } from "../guardian/ladder.ts";
import type { Adapter } from "./adapter.ts";
import type { AgentEnd } from "./agent-end.ts";
import type { RunWork } from "./run-work.ts";
import type { RunsParts } from "./runs.ts";

const LOST = { outcome: "lost", reason: "Its sandbox ended before it did.", died: false } as const;

export class RunRevival {
  readonly #all: RunsParts;
  readonly #work: RunWork;
  readonly #adapter: Adapter;

  constructor(all: RunsParts, work: RunWork, adapter: Adapter) {
    this.#all = all;
    this.#work = work;
    this.#adapter = adapter;
  }

  /** How the run ends; undefined if another agent follows, which is written down then. */
  async after(end: AgentEnd, isStopped: boolean): Promise<AgentEnd | undefined> {
    const { journal, guard } = this.#work;
    if (!isStopped && end.outcome === "failed" && !(await this.#isThere())) return { ...end, ...LOST };
    if (!end.died || isStopped || guard === undefined || (journal.row.guardian ?? "full") !== "full") return end;
    const now = Date.now();
    const died = lateRestarts(guard.restarts, now);
    const cause = end.reason ?? "Its program died.";
    const at = nextRestartAt(guard.restarts, now, this.#all.parts.user.guardian.patience);
    const snapshot = await this.#keep();
    if (at === null) {
      const reason = `${cause} It was started again ${died.length} times within the hour, and died again.`;
      await guard.note("stop", reason, snapshot);
      return { ...end, reason };
    }
    const again = await this.#next(died, cause);
    await guard.note("restart", `${cause} Another agent goes on with the work.`, snapshot);
    const wait = new Date(at).toISOString();
    if (at > now) journal.event({ type: "waiting", for: "retry", until: wait, text: `${cause} It is started again at ${wait}.` });
    journal.change({ again: { ...again, at: wait, isRestart: true }, ...(at > now ? { activity: "starting", activityUntil: wait } : {}) });
    await journal.written();
    this.#all.parts.reach("run.died");
    return undefined;
  }

  /** A sandbox that is stopped ends its programs one by one. */
  async #isThere(): Promise<boolean> {
    const now = await this.#all.parts.store.sandboxes.get(this.#work.sandbox.id);
    return now?.state === "running" || now?.state === "paused";
  }

  /** What it left, before another one works on it. */
  async #keep(): Promise<string | null> {
    try {
      return await this.#work.snapshots.take("Its agent died.");
    } catch (error) {
      this.#all.parts.log.warn("no snapshot of a run whose agent died", { run: this.#work.journal.row.id, error: errorText(error) });
      return null;
    }
  }

  async #next(died: readonly number[], cause: string): Promise<RunAgain> {
    const { journal, messages, snapshots } = this.#work;
    const { conversation } = journal.row;
    if (died.length === 0 && this.#adapter.abilities.resume && conversation !== null) {
      messages.tell(
        `Your program ended in the midst of its work (${cause}) and was started again. The files are as it left them; what it did last may be done in part. Look, and go on with the task.`,
      );
      return { conversation, context: null };
    }
    const context = await this.#work.condensed(
      `An agent worked on this before you, and its program died: ${cause} What it did last may be done in part.`,
    );
    // It died on the state it left before: that state may be why.
    const [first] = died;
    const good = died.length < 2 || first === undefined ? undefined : snapshots.newest(new Date(first).toISOString(), "Its agent died.");
    return { conversation: null, context, ...(good === undefined ? {} : { snapshot: good }) };
  }
}
