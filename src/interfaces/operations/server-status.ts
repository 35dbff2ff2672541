/** What the server says of itself and of its machine. */
import { availableParallelism, loadavg } from "node:os";
import { readVersion } from "../../base/config/machine.ts";
import { layoutOf } from "../../base/host/cgroup-hierarchies.ts";
import { Cgroups, groupName } from "../../base/host/cgroups.ts";
import { diagnose } from "../../base/host/doctor.ts";
import { examineMachine } from "../../base/host/machine.ts";
import type { State } from "../../base/open.ts";
import type { Doctor, ServerStatus } from "../../base/schema/server.ts";
import type { Backends } from "../../machine/backends.ts";
import { freeMemory } from "../../sandbox/start/admission.ts";

interface OpenedByTcp {
  readonly origin: string;
  readonly access: NonNullable<ServerStatus["access"]>;
}

export class ServerView {
  readonly #state: State;
  readonly #backends: Backends;
  readonly #opened: () => OpenedByTcp | undefined;

  /** `opened` is what the server listens on by TCP, if anything. */
  constructor(state: State, backends: Backends, opened: () => OpenedByTcp | undefined) {
    this.#state = state;
    this.#backends = backends;
    this.#opened = opened;
  }

  async status(): Promise<ServerStatus> {
    const { paths, machine, store, startedAt } = this.#state;
    const sandboxes: Record<string, number> = {};
    for (const row of await store.sandboxes.list()) sandboxes[row.state] = (sandboxes[row.state] ?? 0) + 1;
    const { storage } = this.#backends.best;
    const opened = this.#opened();
    return {
      version: readVersion(),
      pid: process.pid,
      startedAt: startedAt.toISOString(),
      home: paths.home,
      log: paths.log,
      listen: opened?.origin ?? null,
      access: opened?.access ?? null,
      driver: this.#backends.walled()?.driver.name ?? "none",
      mode: machine.mode,
      storage: storage.name,
      limitsHeld: this.#limitsHeld,
      sandboxes,
      memory: freeMemory(),
      load: { cpus: availableParallelism(), lastMinute: loadavg()[0] ?? 0 },
      disk: await storage.health.free(),
      newestEvent: (await store.events.range()).newest,
    };
  }

  async doctor(): Promise<Doctor> {
    const { cell, paths, owner, restoration } = this.#state;
    return diagnose({
      machine: await examineMachine(cell, paths.home),
      storage: this.#backends.best.storage.name,
      limits: this.#limitsHeld,
      cell,
      restored: restoration.read(),
      groups: Cgroups.open(groupName(owner))?.version,
      ...(process.platform === "linux" ? { layout: layoutOf() } : {}),
    });
  }

  get #limitsHeld(): "hard" | "watched" {
    return this.#backends.best.driver.capabilities.limits === "hard" ? "hard" : "watched";
  }
}
