/** After a start of the server: every sandbox is found again, finished, or declared lost; leftovers go. */
import { errorText } from "../base/host/log.ts";
import type { Walls } from "../machine/drivers/drivers.ts";
import { VivError } from "../base/schema/errors.ts";
import { LIMITS } from "../base/schema/limits.ts";
import type { SandboxRow } from "../base/store/rows.ts";
import { basesInUse, isLost } from "./projects/bases.ts";
import type { LiveSandbox } from "./shared/live.ts";
import type { Parts } from "./shared/parts.ts";
import type { Registry } from "./shared/registry.ts";
import type { Sandboxes } from "./sandboxes.ts";
import { isFinal } from "./shared/state.ts";

type RecoveryParts = Pick<Parts, "store" | "backends" | "log" | "restoration" | "locks" | "live">;

const FOREIGN =
  "It was launched by another version of viv, which this one can't speak with: its processes go on, but nothing new can be run in it. " +
  "It can be snapshotted, forked, rolled back, stopped and removed; a fork and a rollback start processes of this version.";

export class Recovery {
  readonly #parts: RecoveryParts;
  readonly #sandboxes: Sandboxes;
  readonly #registry: Registry;

  #retryMs: number = LIMITS.retryEveryMs;

  constructor(parts: RecoveryParts, sandboxes: Sandboxes, registry: Registry) {
    this.#parts = parts;
    this.#registry = registry;
    this.#sandboxes = sandboxes;
  }

  /** Once, before the server answers a request. */
  async recover(): Promise<void> {
    const rows = await this.#parts.store.sandboxes.list();
    this.#registry.register(rows, this.#parts.restoration.isPending);
    for (const row of rows) {
      try {
        await this.#recoverOne(row);
      } catch (error) {
        this.#parts.log.warn("sandbox could not be recovered", { sandbox: row.id, error: errorText(error) });
        await this.#survive("sandbox not declared lost", () => this.#lose(row, error));
      }
    }
    await this.#survive("leftovers not removed", () => this.reconcile());
  }

  /** Its row may have changed since recovery began, and then names another base. */
  async #lose(row: SandboxRow, error: unknown): Promise<void> {
    const now = (await this.#parts.store.sandboxes.get(row.id)) ?? row;
    await this.#sandboxes.sandboxEnd.fail(
      { ...now, restoring: null },
      { outcome: "lost", reason: `It could not be recovered: ${errorText(error)}` },
    );
  }

  /** One sandbox that makes trouble keeps neither the server from starting nor the others from being looked after. */
  async #survive(what: string, work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#parts.log.warn(what, { error: errorText(error) });
    }
  }

  async #recoverOne(row: SandboxRow): Promise<void> {
    const { sandboxEnd } = this.#sandboxes;
    if (!this.#parts.backends.has(row)) {
      // Nothing can be told about it until a server comes that has its driver: it is left to run.
      this.#parts.log.warn("the driver of a sandbox is not available", { sandbox: row.id, driver: row.driver });
      return;
    }
    const lost = await isLost(this.#parts.store, this.#parts.backends.of(row).storage, row);
    if (lost) this.#parts.log.warn("a sandbox had begun when the machine failed, and goes", { sandbox: row.id, name: row.name });
    // The caller of one that is held was connected to a server that is no more.
    if (lost || row.removing || row.state === "creating" || row.state === "pending" || row.held === true) {
      await this.#adopt(row);
      await sandboxEnd.remove(row);
      return;
    }
    if (isFinal(row.state)) return;
    const adopted = await this.#adopt(row);
    if (row.restoring !== null || row.state === "completing") await this.#finish(row);
    else if (!adopted)
      await sandboxEnd.fail(row, { outcome: "lost", reason: "Its processes were gone when the server started again; its files are kept." });
  }

  /** What was begun with a sandbox, to its end. */
  async #finish(row: SandboxRow): Promise<void> {
    const { sandboxEnd } = this.#sandboxes;
    if (row.removing || row.state === "creating") await sandboxEnd.remove(row);
    else if (isFinal(row.state)) return;
    // No caller waits for its services: the server answers before they do.
    else if (row.restoring !== null) await this.#sandboxes.snapshots.finishRollback(row, row.restoring);
    else if (row.state === "completing") {
      await sandboxEnd.finishStop(row, (kept, expiresAt) => this.#sandboxes.keep(kept, expiresAt), {
        outcome: row.outcome ?? "done",
        reason: row.reason,
      });
    }
  }

  /** Operations that were cut short, as on a full disk, and that no caller works on now: an operation at work holds its sandbox's lock. */
  async #finishBroken(): Promise<void> {
    const { store, locks } = this.#parts;
    for (const { id } of (await store.sandboxes.list()).filter(isBroken)) {
      if (locks.busy(id)) continue;
      await this.#survive("what was begun with a sandbox not finished", () =>
        locks.run(id, async () => {
          const now = await store.sandboxes.get(id);
          if (now !== undefined) await this.#finish(now);
        }),
      );
    }
  }

  /** Milliseconds until ends that broke off are tried again: longer each time, up to the reconciler's own pace. */
  get retryMs(): number {
    return this.#retryMs;
  }

  /** Finishes what broke off while this server ran, as when another process held a group. */
  async retry(): Promise<void> {
    const { unfinished } = this.#sandboxes.sandboxEnd;
    const waiting = [...unfinished].filter((id) => !this.#parts.locks.busy(id));
    if (waiting.length > 0) await this.#finishBroken();
    this.#retryMs = waiting.some((id) => unfinished.has(id)) ? Math.min(this.#retryMs * 2, LIMITS.reconcileEveryMs) : LIMITS.retryEveryMs;
  }

  /** Takes a sandbox over whose processes still run. */
  async #adopt(row: SandboxRow): Promise<boolean> {
    const live = await this.#sandboxes.sandboxStart.adopt(row, goesOn(row));
    if (live === undefined) return false;
    await this.#restoreMotion(row, live);
    const use = await live.walls.usage();
    live.cpuMs = use.cpuMs ?? 0;
    if (row.expiresAt !== null) live.keepUntil = performance.now() + Date.parse(row.expiresAt) - Date.now();
    live.counters = { outOfMemory: use.outOfMemory, tooManyProcesses: use.tooManyProcesses };
    if (row.state === "running" || row.state === "paused") await this.#listen(row, live);
    return true;
  }

  /** The row says whether its processes run: a server that was killed may have left them standing still, or going on. */
  async #restoreMotion(row: SandboxRow, { walls, driver }: LiveSandbox): Promise<void> {
    if (!driver.capabilities.pause) return;
    await this.#survive("processes of a sandbox neither thawed nor frozen", () => (row.state === "paused" ? walls.freeze() : walls.thaw()));
  }

  /** Goes on with its commands; one that another version launched is left to run, and says what can be done with it. */
  async #listen(row: SandboxRow, live: LiveSandbox): Promise<void> {
    const { store, log } = this.#parts;
    const foreign = await isForeign(live.walls);
    if (foreign !== undefined) log.warn("a sandbox was launched by another version", { sandbox: row.id, name: row.name, why: foreign });
    else await this.#survive("commands of a sandbox not listened to", () => this.#adoptCommands(row, live));
    // No caller waits for its services: the server answers before they do.
    if (foreign === undefined && row.state === "running" && goesOn(row))
      void this.#survive("services of a sandbox not started", () => this.#sandboxes.sandboxStart.finish(row));
    await store.change(async (change) => {
      const known = row.reason === FOREIGN ? null : row.reason;
      await change.sandboxes.put({ ...row, reason: foreign === undefined ? known : FOREIGN });
      await change.event("sandbox.adopted", row.id, { name: row.name, ...(foreign === undefined ? {} : { incompatible: foreign }) });
    });
  }

  async #adoptCommands(row: SandboxRow, live: LiveSandbox): Promise<void> {
    for (const command of await this.#parts.store.commands.list({ sandbox: row.id, running: true }))
      await this.#sandboxes.commands.adopt(row, live, command);
  }

  /** Removes what carries our prefix and belongs to no sandbox. At start, every minute, and when a person asked for it. */
  async reconcile(asked?: "asked"): Promise<string[]> {
    const { store, backends, log, restoration } = this.#parts;
    await this.#finishBroken();
    await this.#removeExpired();
    if (asked === undefined && restoration.isPending) return [];
    restoration.settle();
    const rows = await store.sandboxes.list();
    const snapshots = await store.snapshots.list();
    const bases = basesInUse(rows, snapshots);
    const keep = new Set(rows.map((row) => row.id));
    const kept = {
      volumes: keep,
      snapshots: new Set(snapshots.map((snapshot) => snapshot.id)),
      bases,
      projects: new Set((await store.projects.list()).map((project) => project.id)),
    };
    // Between being a spare and having a row, a sandbox is known to be live alone.
    const sandboxes = async (): Promise<ReadonlySet<string>> =>
      new Set([
        ...(await store.sandboxes.list()).map((row) => row.id),
        ...this.#sandboxes.creation.spares.ids(),
        ...this.#sandboxes.creation.making,
        ...this.#parts.live.entries().map(([id]) => id),
      ]);
    const removed: string[] = [];
    for (const { storage, driver } of backends.all())
      removed.push(...(await storage.health.reconcile(kept)), ...(await driver.reconcile(sandboxes)));
    if (removed.length > 0) {
      log.info("leftovers removed", { removed });
      await store.change((change) => change.event("reconciled", null, { removed: removed.slice(0, 100) }));
    }
    await store.trim();
    return removed;
  }

  async #removeExpired(): Promise<void> {
    const now = new Date().toISOString();
    for (const snapshot of await this.#parts.store.snapshots.list()) {
      if (snapshot.expiresAt === null || snapshot.expiresAt > now) continue;
      const row = await this.#parts.store.sandboxes.get(snapshot.sandbox);
      if (row === undefined) continue;
      // The last snapshot of a stopped sandbox is all that is left of it.
      await this.#survive("expired snapshot not removed", () =>
        isFinal(row.state) && row.currentSnapshot === snapshot.id
          ? this.#sandboxes.remove(row.id)
          : this.#sandboxes.removeSnapshot(row.id, snapshot.id),
      );
    }
  }
}

/** Why this server can't speak with the processes of a sandbox, if it is that they are of another version. */
async function isForeign(walls: Walls): Promise<string | undefined> {
  try {
    await walls.greet();
  } catch (error) {
    // The first request that needs an answer reports anything else.
    if (error instanceof VivError && error.code === "cell_incompatible") return error.message;
  }
  return undefined;
}

/** Whether the processes that an earlier server left go on. */
function goesOn({ state, removing, held, restoring }: SandboxRow): boolean {
  return (state === "running" || state === "paused") && !removing && held !== true && restoring === null;
}

function isBroken(row: SandboxRow): boolean {
  return row.removing || row.state === "creating" || row.state === "completing" || (row.restoring !== null && !isFinal(row.state));
}
