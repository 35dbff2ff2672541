/** What the server says of itself and of its machine. */
import { availableParallelism, loadavg } from "node:os";
import { readVersion } from "../../base/config/machine.ts";
import { Cgroups, groupName, layoutOf } from "../../base/host/cgroups.ts";
import { diagnose } from "../../base/host/doctor.ts";
import { examineMachine } from "../../base/host/machine.ts";
import type { State } from "../../base/open.ts";
import type { Doctor, ServerStatus } from "../../base/schema/server.ts";
import type { Backends } from "../../machine/backends.ts";
import { freeMemory } from "../../sandbox/start/admission.ts";

export class ServerView {
  readonly #state: State;
  readonly #backends: Backends;
  readonly #port: () => number | null;

  /** `port` is the TCP port that the server listens on, if any. */
  constructor(state: State, backends: Backends, port: () => number | null) {
    this.#state = state;
    this.#backends = backends;
    this.#port = port;
  }

  async status(): Promise<ServerStatus> {
    const { paths, machine, store, startedAt } = this.#state;
    const sandboxes: Record<string, number> = {};
    for (const row of await store.sandboxes.list()) sandboxes[row.state] = (sandboxes[row.state] ?? 0) + 1;
    const { storage } = this.#backends.best;
    const port = this.#port();
    return {
      version: readVersion(),
      pid: process.pid,
      startedAt: startedAt.toISOString(),
      home: paths.home,
      log: paths.log,
      listen: port === null ? null : `http://127.0.0.1:${port}`,
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
