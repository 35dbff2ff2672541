/** Composition root: makes the parts, starts them in order, stops them in reverse. */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { Actions } from "./rules/actions/actions.ts";
import { Approvals } from "./rules/approvals/approvals.ts";
import { Audit } from "./rules/audit/audit.ts";
import { listen, type Listening } from "./interfaces/api/listen.ts";
import { findCell, readVersion } from "./base/config/machine.ts";
import { preparePaths, type Paths } from "./base/config/paths.ts";
import { loadUserConfig } from "./base/config/project-config.ts";
import { EventFeed } from "./base/events/events.ts";
import type { NativeDriver } from "./machine/drivers/native/native.ts";
import { CellHost } from "./base/host/cell-host.ts";
import { Cgroups, groupName, layoutOf } from "./base/host/cgroups.ts";
import { CELL_REMEDY, diagnose } from "./base/host/doctor.ts";
import { KeyedLocks } from "./base/host/locks.ts";
import { describe, type Logger } from "./base/host/log.ts";
import { examine, type Machine } from "./base/host/machine.ts";
import { protectFromOom } from "./base/host/oom.ts";
import { Reserve } from "./base/host/reserve.ts";
import { Rounds } from "./base/host/rounds.ts";
import { IdRanges } from "./base/host/id-ranges.ts";
import { StateFolder } from "./base/host/state-folder.ts";
import { freeRanges } from "./base/host/subids.ts";
import { GatewayRoutes } from "./interfaces/gateway/routes.ts";
import { Gateway } from "./interfaces/gateway/gateway.ts";
import { WayOut } from "./rules/effects/way-out.ts";
import { PrivateHosts } from "./rules/network/private-hosts.ts";
import type { Models } from "./rules/models/models.ts";
import { openModels } from "./rules/models/open.ts";
import { Clones } from "./work/checks/clones.ts";
import { Verification } from "./work/checks/verification.ts";
import { Refreshing, type CommonGround } from "./work/refresh/refresh.ts";
import { Experiments } from "./work/experiments/experiments.ts";
import { createEngine } from "./interfaces/operations/engine.ts";
import type { Engine } from "./interfaces/operations/operations.ts";
import { Promotions, type PromotionParts } from "./work/promotion/promotions.ts";
import { Transactions } from "./work/promotion/transaction.ts";
import { freeMemory } from "./sandbox/start/admission.ts";
import { Live } from "./sandbox/shared/live.ts";
import { Mending } from "./sandbox/mending.ts";
import { Backends, type Backend, type Parts } from "./sandbox/shared/parts.ts";
import { Reaper } from "./sandbox/reaper.ts";
import { Recovery } from "./sandbox/recovery.ts";
import { Registry } from "./sandbox/shared/registry.ts";
import { Sandboxes } from "./sandbox/sandboxes.ts";
import { VivError } from "./base/schema/errors.ts";
import { LIMITS } from "./base/schema/limits.ts";
import { openNative, openUnwalled } from "./server-backends.ts";
import type { UserConfig } from "./base/schema/config.ts";
import type { ServerStatus } from "./base/schema/server.ts";
import { holdExclusively } from "./base/store/exclusive.ts";
import { backUpDaily } from "./base/store/sqlite/backups.ts";
import { openStore } from "./base/store/sqlite/repair.ts";

export interface ServerOptions {
  readonly paths: Paths;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly log: Logger;
  /** Also on this port of 127.0.0.1, with a token. */
  readonly tcp?: { readonly port: number; readonly token: string };
  /** Bring a damaged database back from its newest backup. */
  readonly repair?: boolean;
  /** Called at named points; tests kill the process there. */
  readonly reach?: (point: string) => void;
  /** Called when somebody asked the server to stop. */
  readonly onShutdown: () => void;
  /** Called when the state folder is not this server's any more: the process must end without touching anything. */
  readonly onDisowned: (why: VivError) => void;
}

export class Server {
  readonly #options: ServerOptions;
  readonly #startedAt = new Date();
  readonly #closers: (() => unknown)[] = [];
  readonly #live = new Live();
  #listening: Listening | undefined;
  #folder: StateFolder | undefined;
  #host: CellHost | undefined;
  #models: Models | undefined;
  #wayOut: WayOut | undefined;
  readonly #gateway: Gateway;

  private constructor(options: ServerOptions) {
    this.#options = options;
    this.#gateway = new Gateway(options.log);
  }

  /** A running server, or an error and nothing left behind. */
  static async start(options: ServerOptions): Promise<Server> {
    const server = new Server(options);
    try {
      await server.#start();
      return server;
    } catch (error) {
      await server.stop();
      throw error;
    }
  }

  get port(): number | null {
    return this.#listening?.port ?? null;
  }

  /** For clients of the TCP port, as long as the server runs. */
  noteToken(token: string): void {
    const { token: file } = this.#options.paths;
    writeFileSync(file, `${token}\n`, { mode: 0o600 });
    this.#closers.push(() => rmSync(file, { force: true }));
  }

  async #start(): Promise<void> {
    const { paths, env, log, tcp } = this.#options;
    preparePaths(paths);
    const temporary = join(paths.home, "tmp");
    this.#closers.push(holdExclusively(join(paths.home, "lock.db"), paths.home));
    const state = (this.#folder = this.#own(paths.home));
    this.#closers.push(protectFromOom());
    // Only a server that was killed leaves something in it.
    rmSync(temporary, { recursive: true, force: true });
    mkdirSync(temporary, { recursive: true, mode: 0o700 });
    const user = loadUserConfig(paths.config);
    const cell = findCell(env);
    const machine = await examine(cell, paths.home);
    // Without it nothing is known about the sandboxes that run: they are left alone, and nothing is made without walls instead.
    if (machine.cellTrouble !== undefined) throw new VivError("cell_failed", machine.cellTrouble, { remedy: CELL_REMEDY });
    const database = join(paths.home, "vivarium.db");
    const { store, restoration } = await openStore(database, this.#options.repair === true);
    this.#closers.push(() => store.close());
    const folder = await openUnwalled(paths.home, (close) => this.#closers.push(close));
    const backends = new Backends(
      cell === undefined || machine.mode === "none" ? [folder] : [await this.#native(cell, machine, user, state.id), folder],
    );
    const reach = this.#options.reach ?? (() => undefined);
    const privateHosts = await PrivateHosts.open(store);
    const wayOut = (this.#wayOut = new WayOut({
      store,
      privateHosts,
      log,
      user: user.network,
      ownPorts: () => (this.port === null ? [] : [this.port]),
      interceptor: () => this.#models?.interceptor,
      reach,
    }));
    this.#closers.push(() => wayOut.egress.closeAll());
    const parts: Parts = {
      store,
      privateHosts,
      backends,
      user,
      uid: machine.uid,
      home: homedir(),
      state: paths.home,
      log,
      restoration,
      reserve: new Reserve(join(paths.home, "reserve")),
      locks: new KeyedLocks(),
      live: this.#live,
      egress: wayOut.egress,
      gateway: this.#gateway,
      models: {
        environment: (present) => this.#models?.environment(present) ?? {},
        files: (present) => this.#models?.files(present) ?? {},
      },
      reach,
    };
    this.#closers.push(() => this.#gateway.closeAll());
    const engine = await this.#engine(parts, machine, cell, temporary, state.id);
    this.#listening = await listen(engine, {
      version: readVersion(),
      socketPath: paths.socket,
      ...(tcp === undefined ? {} : { tcp }),
      onError: (error) => log.warn("defect", { error: describe(error), stack: error instanceof Error ? error.stack : undefined }),
    });
    this.#closers.push(() => this.#listening?.close());
    await store.change((change) => change.event("server.started", null, { pid: process.pid, version: readVersion() }));
    log.info("listening", { socket: paths.socket, port: this.port, mode: machine.mode });
  }

  /** The state folder, looked at as long as the server runs. */
  #own(home: string): StateFolder {
    const folder = StateFolder.open(home);
    const looking = setInterval(() => this.#disowned(), LIMITS.ownershipEveryMs).unref();
    this.#closers.push(() => {
      clearInterval(looking);
      this.#folder = undefined;
      folder.close();
    });
    return folder;
  }

  /** Whether the state folder was removed or replaced. Whatever has its path now belongs to another server. */
  #disowned(): boolean {
    if (this.#folder === undefined || this.#folder.isThere()) return false;
    const { home } = this.#options.paths;
    this.#options.onDisowned(
      new VivError("state_lost", `The state folder ${home} was removed or replaced while the server worked with it.`),
    );
    return true;
  }

  async #native(cell: string, machine: Machine, user: UserConfig, owner: string): Promise<Backend> {
    const cgroups = Cgroups.open(groupName(owner));
    // Before the cell host's closer, so that it comes after it: the host lives in a group itself.
    this.#closers.push(() => cgroups?.close(this.#live.size === 0));
    const enter = (host: CellHost): void => (host.pid === undefined ? undefined : cgroups?.moveCells(host.pid));
    let driver: NativeDriver | undefined;
    const host = this.#cellHost(cell, {
      exited: (sandbox) => driver?.exited(sandbox),
      restarted: async (next) => {
        enter(next);
        await driver?.rejoin();
      },
    });
    enter(host);
    const { paths } = this.#options;
    const standIns = () => this.#models?.standIns;
    const options = { host, cgroups, machine, paths, user, owner, live: this.#live, standIns };
    const native = await openNative(options, (close) => this.#closers.push(close));
    driver = native.driver;
    return native;
  }

  #cellHost(cell: string, listener?: HostListener): CellHost {
    const { log } = this.#options;
    const host = new CellHost({
      program: cell,
      onEvent: (name, fields) => name === "exited" && listener?.exited(fields.get("sandbox") ?? ""),
      onRestart: (reason, next) => {
        log.warn("the cell host was started again", { reason: reason.message });
        const trouble = (error: unknown): void => log.warn("the new cell host does not watch all sandboxes", { error: describe(error) });
        listener?.restarted(next).catch(trouble);
      },
      onLost: (reason) => {
        const message = "the cell host ends again and again; the server ends and the next one takes the sandboxes over";
        log.warn(message, { reason: reason.message });
        this.#options.onShutdown();
      },
    });
    this.#closers.push(() => host.close());
    this.#host = host;
    return host;
  }

  async #engine(parts: Parts, machine: Machine, cell: string | undefined, temporary: string, owner: string): Promise<Engine> {
    const { log } = this.#options;
    const places = [freeRanges(LIMITS.uidRangeStart, LIMITS.uidRangeSize), freeRanges(LIMITS.largeIdsStart, LIMITS.largeIds)];
    const isFree = (range: number): boolean => places.every((isFreeThere) => isFreeThere(range));
    const registry = new Registry(new IdRanges({ owner, home: parts.state, isFree, shared: machine.mode === "root" }));
    const sandboxes = new Sandboxes(parts, registry);
    const failed = (error: unknown): void => parts.log.warn("hosts that people opened could not be read", { error: describe(error) });
    this.#closers.push(parts.privateHosts.watch(() => sandboxes.networks.renew(), failed));
    this.#closers.push(async () => registry.close());
    this.#closers.push(() => sandboxes.commands.close());
    this.#closers.push(() => sandboxes.creation.spares.close());
    this.#closers.push(async () => sandboxes.holds.close());
    const recovery = new Recovery(parts, sandboxes, registry);
    for (const { driver } of parts.backends.all()) {
      driver.onExit((sandbox) => {
        sandboxes.exited(sandbox).catch((error: unknown) => log.warn("end of a sandbox not handled", { sandbox, error: describe(error) }));
      });
    }
    await recovery.recover();
    const rounds = new Rounds(log);
    this.#closers.push(() => rounds.close());
    const reaper = new Reaper(parts, sandboxes);
    rounds.every(
      "reaper",
      () => reaper.restMs,
      () => reaper.look(),
    );
    rounds.every(
      "finishing what broke off",
      () => recovery.retryMs,
      () => recovery.retry(),
    );
    const mending = new Mending(parts, sandboxes);
    rounds.every("mending", LIMITS.mendEveryMs, () => mending.look());
    rounds.every("backing up the database", LIMITS.reconcileEveryMs, () => backUpDaily(join(this.#options.paths.home, "vivarium.db")));
    await parts.reserve.fill().catch((error: unknown) => log.warn("no space kept back", { error: describe(error) }));
    rounds.every("keeping space back", LIMITS.reconcileEveryMs, () => parts.reserve.fill());
    rounds.every("reconciler", LIMITS.reconcileEveryMs, async () => this.#disowned() || recovery.reconcile());
    const events = new EventFeed(parts.store);
    this.#closers.push(() => events.close());
    const trouble = (error: unknown, lost: number): void => log.warn("trouble with the audit trail", { lost, error: describe(error) });
    const audit = new Audit(parts.store, join(this.#options.paths.home, "audit-anchor"), trouble, { reach: parts.reach });
    this.#closers.push(() => audit.close());
    const approvals = new Approvals(parts.store, audit, join(this.#options.paths.home, "approver-token"), parts.reach);
    const touch = (sandbox: string): void => parts.live.touch(sandbox);
    const { secrets, models } = await openModels(
      { store: parts.store, audit, approvals, user: parts.user, log, touch },
      this.#options.paths.home,
    );
    this.#models = models;
    // Not before it knows which hosts have secrets.
    this.#wayOut?.serve(audit, approvals);
    const actions = new Actions({ ...parts, audit, approvals });
    const routes = new GatewayRoutes({ parts, sandboxes, audit, approvals, actions });
    this.#closers.push(() => routes.close());
    const clones = new Clones(parts, sandboxes);
    const verification = new Verification(parts, sandboxes, clones);
    const promotions = this.#promotions({ parts, audit, registry, sandboxes, verification, temporary }, cell);
    await promotions?.recover();
    rounds.every("finishing promotions", LIMITS.reconcileEveryMs, async () => promotions?.retry());
    const experiments = new Experiments({ parts, sandboxes, clones, verification, temporary }, async (winner) => {
      if (promotions === undefined) throw new VivError("unsupported", "Nothing here promotes.");
      return promotions.promoteWinner(winner);
    });
    this.#closers.push(() => experiments.close());
    const common: CommonGround = promotions?.common ?? (async (_store, _row, _snapshot, sides) => sides);
    const refreshing = new Refreshing({ parts, registry, sandboxes, common, temporary });
    await experiments.resume();
    await routes.resume();
    this.#gateway.serve(routes, models);
    const best = parts.backends.all()[0];
    const limits = best?.driver.capabilities.limits === "hard" ? "hard" : "watched";
    return createEngine({
      parts,
      sandboxes,
      recovery,
      audit,
      approvals,
      actions,
      secrets,
      experiments,
      promotions,
      refreshing,
      events,
      status: () => this.#status(parts, machine, limits),
      doctor: async () =>
        diagnose({
          machine: await examine(cell, this.#options.paths.home),
          storage: best?.volumes.name,
          limits,
          cell,
          restored: parts.restoration.read(),
          groups: Cgroups.open(groupName(owner))?.version,
          ...(process.platform === "linux" ? { layout: layoutOf() } : {}),
        }),
      shutdown: () => this.#options.onShutdown(),
      temporary,
    });
  }

  /** Writing to real projects takes the cell, walls or not. */
  #promotions(all: Omit<PromotionParts, "transactions" | "folder">, cell: string | undefined): Promotions | undefined {
    const { home } = this.#options.paths;
    const host = this.#host ?? (cell === undefined ? undefined : this.#cellHost(cell));
    if (host === undefined) return undefined;
    const transactions = new Transactions(host, join(home, "transactions"), all.parts.reach);
    const promotions = new Promotions({ ...all, transactions, folder: join(home, "promotions") });
    this.#closers.push(() => promotions.close());
    return promotions;
  }

  async #status(parts: Parts, machine: Machine, limitsHeld: "hard" | "watched"): Promise<ServerStatus> {
    const { paths } = this.#options;
    const volumes = parts.backends.all()[0]?.volumes;
    const sandboxes: Record<string, number> = {};
    for (const row of await parts.store.sandboxes()) sandboxes[row.state] = (sandboxes[row.state] ?? 0) + 1;
    return {
      version: readVersion(),
      pid: process.pid,
      startedAt: this.#startedAt.toISOString(),
      home: paths.home,
      log: paths.log,
      listen: this.port === null ? null : `http://127.0.0.1:${this.port}`,
      driver: parts.backends.has("native") ? "native" : "none",
      mode: machine.mode,
      storage: volumes?.name ?? "plain",
      limitsHeld,
      sandboxes,
      memory: freeMemory(),
      disk: (await volumes?.free()) ?? { totalBytes: 0, freeBytes: 0 },
      newestEvent: (await parts.store.eventRange()).newest,
    };
  }

  /** Sandboxes go on. */
  async stop(): Promise<void> {
    if (this.#disowned()) return;
    for (const close of this.#closers.splice(0).toReversed()) {
      try {
        await close();
      } catch (error) {
        this.#options.log.warn("a part did not stop cleanly", { error: describe(error) });
      }
    }
  }
}

/** What the driver hears of the cell host. */
interface HostListener {
  exited(sandbox: string): void;
  /** Another process has taken over. */
  restarted(host: CellHost): Promise<void>;
}
