/** Brings a sandbox that has ended back, under its id and name, from the files that it left. */
import { errorText } from "../../base/host/log.ts";
import { VivError } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { SandboxRow } from "../../base/store/rows.ts";
import type { Creation } from "../start/creation.ts";
import type { SandboxEnd } from "../ending/sandbox-end.ts";
import type { Parts } from "../shared/parts.ts";
import type { Snapshots } from "./snapshots.ts";
import { nextState, isFinal } from "../shared/state.ts";

export class SandboxRestart {
  readonly #parts: Pick<Parts, "store" | "backends" | "reach">;
  readonly #creation: Creation;
  readonly #snapshots: Snapshots;
  readonly #sandboxEnd: SandboxEnd;

  constructor(parts: Pick<Parts, "store" | "backends" | "reach">, creation: Creation, snapshots: Snapshots, sandboxEnd: SandboxEnd) {
    this.#parts = parts;
    this.#creation = creation;
    this.#snapshots = snapshots;
    this.#sandboxEnd = sandboxEnd;
  }

  /** Called with the sandbox's lock held. */
  async start(row: SandboxRow): Promise<SandboxRow> {
    if (!isFinal(row.state))
      throw new VivError(
        "illegal_transition",
        `Sandbox ${row.name} is ${row.state} and can't be started.`,
        row.state === "paused" ? { remedy: `Let it go on: \`viv resume ${row.name}\`.` } : {},
      );
    await this.#creation.admit(row);
    const snapshot = await this.#lastState(row);
    const expiresAt = row.idleMs === 0 ? null : new Date(Date.now() + row.idleMs).toISOString();
    const current = (await this.#parts.store.sandboxes.get(row.id)) ?? row;
    // A crash from here on ends as one of a rollback does: in the snapshot's state, running.
    const starting: SandboxRow = { ...nextState(current, "running", new Date()), expiresAt, restoring: snapshot };
    await this.#parts.store.change((change) => change.sandboxes.put(starting));
    this.#parts.reach("start.begun");
    try {
      const started = await this.#snapshots.finishRollback(starting, snapshot);
      await this.#parts.store.change((change) => change.event("sandbox.running", row.id, { name: row.name }));
      await started.services;
      return started.row;
    } catch (error) {
      await this.#sandboxEnd.backTo(current, `It could not be started again (${errorText(error)}); its files are kept.`);
      throw error;
    }
  }

  /** The snapshot that a stop took; one that failed left its volume instead, and gets one now. */
  async #lastState(row: SandboxRow): Promise<string> {
    if (row.state === "failed" && (await this.#hasVolume(row))) {
      await this.#snapshots.refuseBeyondMost(row);
      return (await this.#snapshots.take(row, { expiresAt: new Date(Date.now() + LIMITS.keptSnapshotMs).toISOString() })).id;
    }
    if (row.currentSnapshot === null) throw new VivError("not_found", `Nothing is kept of ${row.name}.`);
    return (await this.#snapshots.findWhole(row, row.currentSnapshot)).id;
  }

  async #hasVolume(row: SandboxRow): Promise<boolean> {
    try {
      await this.#parts.backends.of(row).storage.disks.paths(row.id);
      return true;
    } catch (error) {
      if (error instanceof VivError && error.code === "not_found") return false;
      throw error;
    }
  }
}
