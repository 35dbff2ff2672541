/** Opens the sandboxes: finds those of the server before, and looks after all of them from then on. */
import { homedir } from "node:os";
import type { State } from "../base/open.ts";
import type { Closers } from "../base/host/closers.ts";
import { IdRanges } from "../base/host/id-ranges.ts";
import { KeyedLocks } from "../base/host/locks.ts";
import { errorText } from "../base/host/log.ts";
import { RepeatedTasks } from "../base/host/repeated-tasks.ts";
import { freeRanges } from "../base/host/subids.ts";
import { LIMITS } from "../base/schema/limits.ts";
import type { Backends } from "../machine/backends.ts";
import type { Rules } from "../rules/open.ts";
import type { Live } from "./shared/live.ts";
import { StorageReopening } from "./storage-reopening.ts";
import type { GatewaySockets, Parts } from "./shared/parts.ts";
import { IdleWatch } from "./idle-watch.ts";
import { Recovery } from "./recovery.ts";
import { Registry } from "./shared/registry.ts";
import { Sandboxes } from "./sandboxes.ts";

export interface SandboxOptions {
  readonly backends: Backends;
  readonly rules: Pick<Rules, "egress" | "privateHosts" | "models">;
  readonly gateway: GatewaySockets;
  readonly live: Live;
  /** Called at named points; tests kill the process there. */
  readonly reach: (point: string) => void;
}

export interface SandboxFloor {
  readonly parts: Parts;
  readonly registry: Registry;
  readonly sandboxes: Sandboxes;
  readonly recovery: Recovery;
}

export async function openSandboxes(state: State, options: SandboxOptions, closers: Closers): Promise<SandboxFloor> {
  const parts = partsOf(state, options);
  const registry = new Registry(idRanges(state));
  closers.add(() => registry.close());
  const sandboxes = new Sandboxes(parts, registry);
  closers.add(() => sandboxes.commands.close());
  closers.add(() => sandboxes.desktops.closeAll());
  closers.add(() => sandboxes.notebooks.closeAll());
  closers.add(() => sandboxes.creation.spares.close());
  closers.add(() => sandboxes.holds.close());
  const failed = (error: unknown): void => state.log.warn("hosts that people opened could not be read", { error: errorText(error) });
  closers.add(parts.privateHosts.watch(() => sandboxes.networks.renew(), failed));
  listenForEnds(parts, sandboxes);
  const recovery = new Recovery(parts, sandboxes, registry);
  await recovery.recover();
  sandboxes.notebooks.resume().catch((error: unknown) => state.log.warn("code of before not taken up", { error: errorText(error) }));
  await lookAfter(state, parts, sandboxes, recovery, closers);
  return { parts, registry, sandboxes, recovery };
}

function partsOf(state: State, { backends, rules, gateway, live, reach }: SandboxOptions): Parts {
  const { store, user, machine, paths, log, restoration, reserve } = state;
  const { egress, privateHosts, models } = rules;
  const places = { uid: machine.uid, home: homedir(), state: paths.home };
  return {
    store,
    backends,
    user,
    ...places,
    log,
    restoration,
    reserve,
    locks: new KeyedLocks(),
    live,
    egress,
    privateHosts,
    gateway,
    models,
    reach,
  };
}

function idRanges({ owner, paths, machine }: State): IdRanges {
  const places = [freeRanges(LIMITS.uidRangeStart, LIMITS.uidRangeSize), freeRanges(LIMITS.largeIdsStart, LIMITS.largeIds)];
  const isFree = (range: number): boolean => places.every((isFreeThere) => isFreeThere(range));
  return new IdRanges({ owner, home: paths.home, isFree, shared: machine.mode === "root" });
}

function listenForEnds({ backends, log }: Parts, sandboxes: Sandboxes): void {
  for (const { driver } of backends.all()) {
    driver.onExit((sandbox) => {
      sandboxes.exited(sandbox).catch((error: unknown) => log.warn("end of a sandbox not handled", { sandbox, error: errorText(error) }));
    });
  }
}

async function lookAfter(
  { log, reserve, isDisowned }: State,
  parts: Parts,
  sandboxes: Sandboxes,
  recovery: Recovery,
  closers: Closers,
): Promise<void> {
  await reserve.fill().catch((error: unknown) => log.warn("no space kept back", { error: errorText(error) }));
  const idleWatch = new IdleWatch(parts, sandboxes);
  const reopening = new StorageReopening(parts, sandboxes);
  const tasks = new RepeatedTasks(log);
  closers.add(() => tasks.close());
  tasks.every(
    "idle watch",
    () => idleWatch.restMs,
    () => idleWatch.look(),
  );
  tasks.every(
    "finishing what broke off",
    () => recovery.retryMs,
    () => recovery.retry(),
  );
  tasks.every("opening storage again", LIMITS.mendEveryMs, () => reopening.look());
  tasks.every("keeping space back", LIMITS.reconcileEveryMs, () => reserve.fill());
  tasks.every("reconciler", LIMITS.reconcileEveryMs, async () => isDisowned() || recovery.reconcile());
}
