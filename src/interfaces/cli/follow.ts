/** Follows an experiment or the like on the server: reads it again whenever an event says that it changed, also over a restart. */
import { existsSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import type { Client } from "../client/client.ts";
import { isListening } from "../client/listening.ts";
import { findPaths, type Environment } from "../../base/config/paths.ts";
import { VivError } from "../../base/schema/errors.ts";
import type { VivEvent } from "../../base/schema/event.ts";
import { OWN_PROCESS, type Caller } from "./caller.ts";
import { connect } from "./connect.ts";
import type { Screen } from "./screen.ts";

/** Events say when to look; this is for the one that was lost. */
const LOOK_AGAIN_MS = 5000;
/** Steps on the way are shown no faster than people read: looking is work for a server that has the same machine to work on. */
const STEP_MS = 100;
const RETRY_MS = 100;
/** Preparing for a lost connection waits this long, so that it does not slow down the start of the command. */
const PREPARE_MS = 2000;
/** How long a server that a person stopped, or that this command must not start, may take to come back. */
const AWAY_MS = 60_000;

export interface FollowedOperation<State> {
  readonly look: () => Promise<State>;
  /** Whether an event is about it. */
  readonly concerns: (event: VivEvent) => boolean;
  /** Whether it is only a step on the way. */
  readonly isStep?: (event: VivEvent) => boolean;
  readonly isOver: (state: State) => boolean;
  /** A sandbox that is in use meanwhile, and what that use is called. */
  readonly uses?: { readonly uses: string; readonly as: string };
  readonly signal?: AbortSignal;
}

export interface FollowParts {
  readonly client: Client;
  readonly screen: Screen;
  readonly env: Environment;
  /** This process if left out. */
  readonly caller?: Caller;
  /** A remark that does not disturb what is drawn meanwhile. */
  readonly say: (line: string) => void;
}

/** Its states, until it is over or the signal comes. */
export async function* follow<State>(around: FollowParts, followed: FollowedOperation<State>): AsyncGenerator<State, void, void> {
  const { isOver, look, signal } = followed;
  const changes = new Changes(around, followed);
  const abort = (): void => changes.end();
  signal?.addEventListener("abort", abort, { once: true });
  try {
    for (;;) {
      if (signal?.aborted === true) return;
      let state: State;
      try {
        await changes.begin();
        state = await look();
      } catch (error) {
        if (!isAway(error)) throw error;
        await bringBack(around, changes.stopped);
        continue;
      }
      yield state;
      if (isOver(state)) return;
      await changes.next();
    }
  } finally {
    signal?.removeEventListener("abort", abort);
    changes.end();
  }
}

function isAway(error: unknown): boolean {
  return error instanceof VivError && error.code === "server_unreachable";
}

/** For a command that goes on with what a server did before it went away: one that was stopped has removed its socket, one that died has not. */
export async function serverIsBack(around: Pick<FollowParts, "screen" | "env" | "say">): Promise<void> {
  const { socket } = findPaths(around.env);
  if (!(await isListening(socket))) await bringBack(around, !existsSync(socket));
}

/** A server that died is started again, as by any command that needs one; one that was stopped on purpose is waited for. */
async function bringBack({ screen, env, say }: Pick<FollowParts, "screen" | "env" | "say">, stopped: boolean): Promise<void> {
  const { socket } = findPaths(env);
  const waiting = stopped || Boolean(env["VIV_NO_START"]);
  say(waiting ? "viv: the server is away; waiting for it to come back." : "viv: the server is away; starting it again.");
  if (!waiting) {
    (await connect(screen, env)).close();
    return;
  }
  const deadline = performance.now() + AWAY_MS;
  while (!(await isListening(socket))) {
    if (performance.now() > deadline)
      throw new VivError("server_unreachable", "The server has gone away and did not come back.", {
        remedy: "Work under way goes on where it can once the server is there again: `viv up`.",
      });
    await delay(RETRY_MS);
  }
}

/** Listens in the background; several changes between two looks are one. */
class Changes {
  /** Whether the server said that it stops. */
  stopped = false;
  readonly #client: Client;
  /** Whether the server may go away without this. */
  readonly #outlives: boolean;
  readonly #followed: Pick<FollowedOperation<unknown>, "concerns" | "isStep" | "uses">;
  readonly #end = new AbortController();
  #begun = false;
  #changed: "no" | "a step" | "yes" = "no";
  #lookedAt = 0;
  #wake: (() => void) | undefined;

  constructor({ client, caller = OWN_PROCESS }: FollowParts, followed: Pick<FollowedOperation<unknown>, "concerns" | "isStep" | "uses">) {
    this.#client = client;
    this.#outlives = caller === OWN_PROCESS;
    this.#followed = followed;
  }

  /** Once it has begun, nothing is missed. */
  async begin(): Promise<void> {
    if (this.#begun) return;
    const { newest } = await this.#client.call("listEvents", { limit: 1 });
    this.#begun = true;
    void this.#listen(newest);
    // While it is surely there: by the time that a server has to be started, the program may have been replaced.
    if (this.#outlives) setTimeout(() => void import("./start.ts").catch(() => undefined), PREPARE_MS).unref();
  }

  async next(): Promise<void> {
    await this.#until(() => this.#changed !== "no", LOOK_AGAIN_MS);
    await this.#until(() => this.#changed !== "a step", this.#lookedAt + STEP_MS - performance.now());
    this.#lookedAt = performance.now();
    this.#changed = "no";
  }

  async #until(isTrue: () => boolean, mostMs: number): Promise<void> {
    const deadline = performance.now() + mostMs;
    while (!isTrue() && !this.#end.signal.aborted) {
      const left = deadline - performance.now();
      if (left <= 0) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, left);
      this.#wake = resolve;
      await promise;
      clearTimeout(timer);
    }
  }

  end(): void {
    this.#end.abort();
    this.#wake?.();
  }

  async #listen(from: number): Promise<void> {
    const { signal } = this.#end;
    let after = from;
    while (!signal.aborted) {
      try {
        for await (const event of this.#client.events(after, { ...this.#followed.uses, signal })) {
          after = event.sequence;
          this.stopped = event.type === "server.stopped";
          if (this.#followed.concerns(event)) this.#notify(this.#followed.isStep?.(event) === true);
        }
      } catch {
        // The fault that broke the stream also meets the next look, and is reported there.
      }
      if (signal.aborted) return;
      this.#notify(false);
      await delay(RETRY_MS);
    }
  }

  #notify(isStep: boolean): void {
    this.#changed = isStep && this.#changed !== "yes" ? "a step" : "yes";
    this.#wake?.();
  }
}
