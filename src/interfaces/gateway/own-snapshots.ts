/** Snapshots that a sandbox takes of itself, and its way back to them. */
import type { Audit } from "../../rules/audit/audit.ts";
import { errorText, type Logger } from "../../base/host/log.ts";
import type { Sandboxes } from "../../sandbox/sandboxes.ts";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { SandboxRow } from "../../base/store/rows.ts";
import type { RunGateway } from "../../work/agents/run-gateway.ts";
import type { Answer, Call } from "./call.ts";

/** The answer is on its way before the processes that wait for it end. */
const ANSWER_MS = 2_000;

export interface OwnSnapshotsParts {
  readonly sandboxes: Sandboxes;
  readonly runs: RunGateway;
  readonly audit: Audit;
  readonly log: Logger;
}

export class OwnSnapshots {
  readonly #parts: OwnSnapshotsParts;
  /** Sandboxes that go back once they have their answer. */
  readonly #leaving = new Set<string>();

  constructor(parts: OwnSnapshotsParts) {
    this.#parts = parts;
  }

  async take({ row, input: { name } }: Call<"takeSnapshot">): Answer<"takeSnapshot"> {
    const { sandboxes } = this.#parts;
    const count = (await sandboxes.snapshots.list(row)).length;
    if (count >= LIMITS.maxAgentSnapshots)
      throw new VivError("no_capacity", `The sandbox has ${count} snapshots, and its agent may take no more.`, {
        remedy: "Go on without one; a person can remove some.",
      });
    await this.#record(row, "snapshot", name ?? "");
    return { body: await sandboxes.snapshot(row.id, name) };
  }

  async list({ row }: Call<"listSnapshots">): Answer<"listSnapshots"> {
    return { body: { snapshots: await this.#parts.sandboxes.snapshots.list(row) } };
  }

  /** What is there now is kept first. */
  async rollBack({ row, input, signal }: Call<"rollBack">): Answer<"rollBack"> {
    const { sandboxes } = this.#parts;
    if (this.#leaving.has(row.id)) throw new VivError("busy", "The sandbox is on its way back to a snapshot.");
    this.#leaving.add(row.id);
    try {
      const snapshot = await sandboxes.snapshots.findWhole(row, input.snapshot);
      await this.#record(row, "roll_back", snapshot.name ?? snapshot.id);
      const before = await sandboxes.snapshot(row.id, undefined);
      void answered(signal).then(() => this.#carryOut(row, snapshot.id));
      return { body: { accepted: true, snapshot: snapshot.id, before: before.id } };
    } catch (error) {
      this.#leaving.delete(row.id);
      throw error;
    }
  }

  async #carryOut(row: SandboxRow, snapshot: string): Promise<void> {
    const { sandboxes, runs, log } = this.#parts;
    try {
      if (!(await runs.rollBack(row.id, snapshot))) await sandboxes.rollback(row.id, snapshot);
    } catch (error) {
      log.warn("a sandbox was not rolled back", { sandbox: row.id, snapshot, error: errorText(error) });
    } finally {
      this.#leaving.delete(row.id);
    }
  }

  #record(row: SandboxRow, action: string, target: string): Promise<unknown> {
    return this.#parts.audit.record({
      actor: { kind: "agent", name: row.name },
      action,
      target,
      arguments: {},
      label: "AUTONOMOUS",
      rule: null,
      reason: null,
      sandbox: row.id,
      snapshot: row.currentSnapshot,
    });
  }
}

/** The signal of a request is aborted when its answer was sent, or its caller is gone. */
async function answered(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ANSWER_MS);
  signal.addEventListener("abort", () => resolve(), { once: true });
  await promise;
  clearTimeout(timer);
}
