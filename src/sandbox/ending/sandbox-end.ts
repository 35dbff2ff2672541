/** The ways a sandbox ends: stopped with its work kept, failed, or thrown away. Each survives a crash at any point. */
import { LIMITS } from "../../base/schema/limits.ts";
import { errorText } from "../../base/host/log.ts";
import type { Outcome } from "../../base/schema/sandbox.ts";
import type { SandboxRow } from "../../base/store/rows.ts";
import { basesOf, dropUnused } from "../projects/bases.ts";
import type { Commands } from "../commands/commands.ts";
import type { Networks } from "../permissions/networks.ts";
import type { Parts } from "../shared/parts.ts";
import type { Registry } from "../shared/registry.ts";
import { nextState, isFinal } from "../shared/state.ts";
import { discardWith } from "./waiting-promotions.ts";

/** Takes a snapshot of a sandbox; given by the part that has the snapshots. */
type Keep = (row: SandboxRow, expiresAt: string) => Promise<unknown>;

type SandboxEndParts = Pick<Parts, "store" | "backends" | "live" | "log" | "reserve" | "reach">;

export class SandboxEnd {
  /** Ends that were begun; one that stays here while no operation works on it was cut short. */
  readonly unfinished = new Set<string>();
  readonly #parts: SandboxEndParts;
  readonly #registry: Registry;
  readonly #commands: Commands;
  readonly #networks: Networks;

  constructor(parts: SandboxEndParts, registry: Registry, commands: Commands, networks: Networks) {
    this.#parts = parts;
    this.#registry = registry;
    this.#commands = commands;
    this.#networks = networks;
  }

  /** Ends the processes and keeps the work in a snapshot. Called with the sandbox's lock held. */
  async stop(row: SandboxRow, keep: Keep, end: { outcome: Outcome; reason: string | null }): Promise<SandboxRow> {
    const completing = { ...nextState(row, "completing", new Date()), ...end };
    await this.#save(completing, "sandbox.completing");
    this.#parts.reach("stop.completing");
    return this.finishStop(completing, keep, end);
  }

  /** From any point of a stop to its end. */
  async finishStop(row: SandboxRow, keep: Keep, end: { outcome: Outcome; reason: string | null }): Promise<SandboxRow> {
    this.unfinished.add(row.id);
    await this.endProcesses(row, LIMITS.stopGraceMs, "cancelled");
    this.unfinished.delete(row.id);
    this.#parts.reach("stop.stopped");
    await this.#keepOrFail(row, keep);
    this.#parts.reach("stop.snapshot");
    const kept = (await this.#parts.store.sandboxes.get(row.id)) ?? row;
    const completed = nextState(kept, "completed", new Date(), end);
    await this.#save(completed, "sandbox.completed");
    await this.#parts.backends.of(row).storage.disks.remove(row.id);
    return completed;
  }

  /** Where the snapshot can't be taken, the volume stays instead: the work is not lost, and the state is final. */
  async #keepOrFail(row: SandboxRow, keep: Keep): Promise<void> {
    try {
      await keep(row, new Date(Date.now() + LIMITS.keptSnapshotMs).toISOString());
    } catch (error) {
      const reason = `It was stopped, but no snapshot could be taken (${errorText(error)}); its files are kept and can be forked.`;
      await this.#save(nextState(row, "failed", new Date(), { outcome: "failed", reason }), "sandbox.failed");
      throw error;
    }
  }

  /** The sandbox is broken or gone; its volume stays for a look or a fork. */
  async fail(row: SandboxRow, end: { outcome: Outcome; reason: string }): Promise<void> {
    if (isFinal(row.state)) return;
    await this.endProcesses(row, 0, "lost");
    await this.#save(nextState(row, "failed", new Date(), end), "sandbox.failed");
  }

  /** Puts a sandbox that could not be started again back to its state before. Called with the sandbox's lock held. */
  async backTo(row: SandboxRow, reason: string): Promise<void> {
    await this.endProcesses(row, 0, "lost");
    // A stopped one has its files in its snapshot.
    if (row.state === "completed") await this.#parts.backends.of(row).storage.disks.remove(row.id);
    // The row may tell of another snapshot by now, and then the base of the row before is gone.
    const { refreshedTo, currentSnapshot } = (await this.#parts.store.sandboxes.get(row.id)) ?? row;
    await this.#save({ ...row, refreshedTo, currentSnapshot, reason }, row.state === "completed" ? "sandbox.completed" : "sandbox.failed");
  }

  /** Removes all of a sandbox but its events. Called with the sandbox's lock held. */
  async remove(row: SandboxRow): Promise<{ projectInUse: boolean }> {
    return this.#parts.reserve.during(() => this.#remove(row));
  }

  async #remove(row: SandboxRow): Promise<{ projectInUse: boolean }> {
    const { store, reach } = this.#parts;
    const { storage, capture } = this.#parts.backends.of(row);
    const removing = { ...row, removing: true };
    this.unfinished.add(row.id);
    await store.change((change) => change.sandboxes.put(removing));
    reach("remove.begun");
    await this.endProcesses(removing, 0, "cancelled");
    reach("remove.stopped");
    for (const snapshot of await store.snapshots.list({ sandbox: row.id }))
      await this.#orLater(row, () => storage.snapshots.remove(snapshot.id));
    await this.#orLater(row, () => storage.disks.remove(row.id));
    reach("remove.volume");
    const { unused, projectInUse } = await store.change(async (change) => {
      const snapshots = await change.snapshots.list({ sandbox: row.id });
      for (const snapshot of snapshots) await change.snapshots.remove(snapshot.id);
      await change.sandboxes.remove(row.id);
      await discardWith(change, row.id);
      await change.event("sandbox.removed", row.id, { name: row.name });
      const bases = [...basesOf(row), ...snapshots.flatMap(basesOf)];
      return {
        unused: await dropUnused(change, this.#registry, bases),
        projectInUse: await change.sandboxes.has({ project: row.project }),
      };
    });
    this.#registry.release(row);
    this.unfinished.delete(row.id);
    for (const base of unused) await this.#orLater(row, () => capture.forget(base));
    return { projectInUse };
  }

  /** If a full disk has stopped the storage, the removal fails: the leftover belongs to no sandbox, and the next reconciliation removes it. */
  async #orLater(row: SandboxRow, removal: () => Promise<void>): Promise<void> {
    try {
      await removal();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EROFS") throw error;
      this.#parts.log.warn("storage of a removed sandbox is cleared later", { sandbox: row.id, error: errorText(error) });
    }
  }

  /** The counterpart of a start: what it opened is closed, and the disk is left. Called with the sandbox's lock held. */
  async endProcesses(row: SandboxRow, graceMs: number, cause: "cancelled" | "lost"): Promise<void> {
    const { live, backends } = this.#parts;
    const running = live.get(row.id);
    if (running !== undefined) {
      // A frozen process of a v1 hierarchy can't die.
      if (running.driver.capabilities.pause) await running.walls.thaw();
      await running.walls.stop(graceMs);
      live.remove(row.id);
    }
    this.#networks.close(row.id);
    await this.#commands.settleAll(row.id, cause);
    await backends.of(row).driver.clear(row.id, row.removing ? "remove" : "keep");
  }

  async #save(row: SandboxRow, event: "sandbox.completing" | "sandbox.completed" | "sandbox.failed"): Promise<void> {
    await this.#parts.store.change(async (change) => {
      await change.sandboxes.put(row);
      await change.event(event, row.id, { name: row.name, outcome: row.outcome, reason: row.reason });
    });
  }
}
