/**
 * Opens the floors from the ground up, and closes them in reverse. Two parts are made before their floor opens: the list of live
 * sandboxes, which tells the floors below what is in use, and the sockets of the gateway, which sandboxes need when they start.
 */
import { listenChoice, type ListenChoice } from "./base/config/listen-choice.ts";
import { readVersion } from "./base/config/machine.ts";
import { Closers } from "./base/host/closers.ts";
import { openState, type State, type StateOptions } from "./base/open.ts";
import type { HttpListener } from "./interfaces/api/listen.ts";
import { Gateway } from "./interfaces/gateway/gateway.ts";
import { openInterfaces } from "./interfaces/open.ts";
import { openMachine } from "./machine/open.ts";
import { openRules } from "./rules/open.ts";
import { Live } from "./sandbox/shared/live.ts";
import { openSandboxes } from "./sandbox/open.ts";
import { openWork } from "./work/open.ts";

export interface ServerOptions extends StateOptions {
  /** Also by TCP; what the user's config says if left out. */
  readonly listen?: ListenChoice | undefined;
  /** Called at named points; tests kill the process there. */
  readonly reach?: (point: string) => void;
  /** Called when a caller asked the server to stop. */
  readonly onShutdown: () => void;
}

export class Server {
  readonly #options: ServerOptions;
  readonly #closers: Closers;
  #state: State | undefined;
  #listening: HttpListener | undefined;

  private constructor(options: ServerOptions) {
    this.#options = options;
    this.#closers = new Closers(options.log);
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
    return this.#listening?.opened?.port ?? null;
  }

  async #start(): Promise<void> {
    const { log, reach = () => undefined, onShutdown } = this.#options;
    const closers = this.#closers;
    const state = (this.#state = await openState(this.#options, closers));
    const listen = this.#options.listen ?? (state.user.listen && listenChoice(state.user.listen));
    const live = new Live();
    const ownPorts = (): number[] => (this.port === null ? [] : [this.port]);
    const rules = await openRules(state, { touch: (sandbox) => live.touch(sandbox), ownPorts, reach }, closers);
    const machine = await openMachine(
      state,
      { standIns: () => rules.models.standIns, isIdle: () => live.size === 0, onLost: onShutdown },
      closers,
    );
    const gateway = new Gateway(log, rules.models);
    closers.add(() => gateway.closeAll());
    const floor = await openSandboxes(state, { backends: machine.backends, rules, gateway, live, reach }, closers);
    const work = await openWork(
      state,
      rules,
      floor,
      { host: machine.host, origin: () => this.#listening?.opened?.origin ?? null },
      closers,
    );
    this.#listening = await openInterfaces({ state, rules, floor, work, gateway, listen, shutdown: onShutdown }, closers);
    await state.store.change((change) => change.event("server.started", null, { pid: process.pid, version: readVersion() }));
    log.info("listening", { socket: state.paths.socket, listen: this.#listening.opened?.origin ?? null, mode: state.machine.mode });
  }

  /** Sandboxes go on. */
  async stop(): Promise<void> {
    if (this.#state?.isDisowned() === true) return;
    await this.#closers.close();
    this.#state = undefined;
  }
}
