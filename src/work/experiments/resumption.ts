/** What an earlier server left of experiments: ended attempts stay, interrupted ones begin again, leftovers go. */
import { ExperimentId } from "../../base/schema/ids.ts";
import type { Attempt } from "../../base/schema/experiment.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import { isFinal } from "../../sandbox/shared/state.ts";
import type { ExperimentRow, SandboxRow } from "../../base/store/rows.ts";
import type { ExperimentParts } from "./attempt.ts";
import { EXPERIMENT_LABEL, ROLE_LABEL } from "../checks/clones.ts";
import { newAttempt } from "./input.ts";
import { FINAL } from "./run.ts";
import { title } from "./ranking.ts";

export class Resumption {
  readonly #all: ExperimentParts;

  constructor(all: ExperimentParts) {
    this.#all = all;
  }

  /** The rows to go on with. */
  async prepare(): Promise<ExperimentRow[]> {
    const { store } = this.#all.parts;
    const sandboxes = await store.sandboxes.list();
    const rows = await store.experiments.list();
    const ready: ExperimentRow[] = [];
    for (const row of rows.toReversed().filter(({ state }) => state === "queued" || state === "running")) {
      const next = await this.#prepareOne(row, sandboxes);
      await store.change((change) => change.experiments.put(next));
      if (next.state !== "failed") ready.push(next);
    }
    await this.#clear(sandboxes);
    await this.#letGo(rows, sandboxes);
    return ready;
  }

  async #prepareOne(row: ExperimentRow, sandboxes: readonly SandboxRow[]): Promise<ExperimentRow> {
    if (row.origin === null) return { ...row, state: "queued" };
    const attempts: Attempt[] = [];
    for (const attempt of row.attempts) attempts.push(await this.#prepareAttempt(attempt, sandboxes));
    const origin = sandboxes.find(({ id }) => id === row.origin?.sandbox);
    if (origin !== undefined && (await this.#hasSnapshot(row.origin.snapshot))) return { ...row, attempts };
    return this.#withoutOrigin({ ...row, attempts });
  }

  async #prepareAttempt(attempt: Attempt, sandboxes: readonly SandboxRow[]): Promise<Attempt> {
    if (attempt.state === "queued") return attempt;
    if (FINAL.has(attempt.state)) return attempt;
    const isThere = sandboxes.some(({ id, removing }) => id === attempt.sandbox && !removing);
    if (attempt.snapshot !== null && isThere && (await this.#hasSnapshot(attempt.snapshot)))
      return attempt.checked === null ? attempt : { ...attempt, state: attempt.state === "verifying" ? "done" : attempt.state };
    // An agent goes on by itself while no server is there.
    if (attempt.run != null && attempt.state === "running" && isThere) return attempt;
    const fresh = newAttempt(attempt.index, attempt.name, attempt.command, attempt.run);
    return { ...fresh, reruns: attempt.reruns + 1, reason: "The server was interrupted while it ran; it begins again." };
  }

  /** Exactly what is missing. */
  #withoutOrigin(row: ExperimentRow): ExperimentRow {
    const open = row.attempts.filter(({ state }) => !FINAL.has(state));
    const which = open.length === 0 ? "no winner can be verified" : `${open.map(title).join(", ")} can't be run`;
    const reason = `It was interrupted, and the frozen reality that it started from (snapshot ${row.origin?.snapshot ?? "?"}) is gone: ${which}. What had ended is kept.`;
    const attempts = row.attempts.map((attempt) =>
      FINAL.has(attempt.state) ? attempt : { ...attempt, state: "failed" as const, reason: "The frozen reality it starts from is gone." },
    );
    return { ...row, attempts, state: "failed", reason, origin: null, endedAt: new Date().toISOString() };
  }

  async #hasSnapshot(id: string): Promise<boolean> {
    return (await this.#all.parts.store.snapshots.get(id)) !== undefined;
  }

  /** What an ended experiment keeps ends like any other sandbox, also where its server was killed before it could say so. */
  async #letGo(rows: readonly ExperimentRow[], sandboxes: readonly SandboxRow[]): Promise<void> {
    const { clones } = this.#all;
    const held = new Set(sandboxes.filter(({ state, idleMs }) => idleMs === 0 && !isFinal(state)).map(({ id }) => id));
    for (const { state, origin, attempts } of rows) {
      if (!FINAL.has(state)) continue;
      if (origin !== null && held.has(origin.sandbox)) clones.rest(origin.sandbox);
      for (const { sandbox } of attempts) if (sandbox !== null && held.has(sandbox)) await clones.release(sandbox, LIMITS.defaultIdleMs);
    }
  }

  /** Sandboxes that carry the label of an experiment and are named by none. */
  async #clear(sandboxes: readonly SandboxRow[]): Promise<void> {
    const rows = await this.#all.parts.store.experiments.list();
    const named = new Set(rows.flatMap(({ origin, attempts }) => [origin?.sandbox, ...attempts.map(({ sandbox }) => sandbox)]));
    for (const { review } of await this.#all.parts.store.runs.list({ open: true })) named.add(review?.sandbox);
    for (const { id, labels, removing } of sandboxes) {
      const isOurs = ExperimentId.safeParse(labels[EXPERIMENT_LABEL]).success && labels[ROLE_LABEL] !== undefined;
      if (isOurs && !removing && !named.has(id)) this.#all.clones.discard(id);
    }
  }
}
