/**
 * The one stream of events of this page, and what is true about it: live, stale, offline or replaying. It comes back by itself after
 * a restart of the server, a sleep of the computer and a loss of the network, and goes on from the last event that was seen.
 */
import type { VivEvent } from "../../../src/base/schema/event.ts";
import { VivError } from "../../../src/base/schema/errors.ts";
import { call, events } from "./client.ts";
import { whileSeen } from "./hidden.ts";

export type LiveState =
  | { readonly kind: "connecting" }
  | { readonly kind: "live" }
  /** The connection is there and says nothing: what is shown is as old as that. */
  | { readonly kind: "stale"; readonly since: number }
  | { readonly kind: "offline"; readonly since: number }
  | { readonly kind: "replaying"; readonly left: number }
  | { readonly kind: "logged-out" };

type Listener = (events: readonly VivEvent[]) => void;

const PING_MS = 10_000;
const STALE_MS = 15_000;
const GIVE_UP_MS = 30_000;
const TICK_MS = 1_000;
/** A timer that is this late says that the computer slept. */
const SLEPT_MS = 8_000;
const FIRST_RETRY_MS = 400;
const LONGEST_RETRY_MS = 5_000;
/** How long a new connection may take, in times of the wait before it: from 3 s to half a minute, so that a slow network is enough. */
const PATIENCE = 6;
const LEAST_PATIENCE_MS = 3_000;
const BATCH_MS = 40;
/** How long an event may take on its way. */
const ON_ITS_WAY_MS = 2_000;

class Live {
  #state: LiveState = { kind: "connecting" };
  readonly #watchers = new Set<() => void>();
  readonly #listeners = new Set<Listener>();
  #last = -1;
  #heardAt = Date.now();
  /** When the connection was begun that there is now. */
  #triedAt = Date.now();
  #tickedAt = Date.now();
  #connection: AbortController | undefined;
  #retry: number | undefined;
  #retryMs = FIRST_RETRY_MS;
  #wasConnected = false;
  /** Whether the page is in the background, without a connection. */
  #away = false;
  #waiting: VivEvent[] = [];
  #batch: number | undefined;
  #pinging = false;

  get state(): LiveState {
    return this.#state;
  }

  start(): void {
    setInterval(() => this.#tick(), TICK_MS);
    addEventListener("online", () => !this.#away && this.#now());
    addEventListener("offline", () => this.#lost());
    whileSeen(
      () => {
        this.#away = true;
        this.#drop();
      },
      () => {
        this.#away = false;
        this.#now();
      },
    );
    void this.#connect();
  }

  watch(watcher: () => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  /** Hears events in batches; returns what ends that. */
  listen(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Hears that there is a connection again, after one that ended or was given up; returns what ends that. */
  onReturn(listener: () => void): () => void {
    return this.listen((batch) => {
      if (batch.length === 0) listener();
    });
  }

  async #connect(): Promise<void> {
    if (this.#connection !== undefined) return;
    const connection = new AbortController();
    this.#connection = connection;
    this.#triedAt = Date.now();
    try {
      const patience = AbortSignal.timeout(Math.max(LEAST_PATIENCE_MS, PATIENCE * this.#retryMs));
      const { newestEvent } = await call("status", {}, AbortSignal.any([connection.signal, patience]));
      this.#heardAt = Date.now();
      // Of another state folder, or one that was put back from a backup: numbers begin anew.
      if (newestEvent < this.#last) this.#last = -1;
      if (this.#last < 0) this.#last = newestEvent;
      this.#retryMs = FIRST_RETRY_MS;
      this.#set(newestEvent > this.#last ? { kind: "replaying", left: newestEvent - this.#last } : { kind: "live" });
      // What was asked while there was no connection may be old.
      if (this.#wasConnected) this.#tell([]);
      this.#wasConnected = true;
      for await (const event of events(this.#last, connection.signal)) this.#hear(event, newestEvent);
      throw new VivError("server_unreachable", "The stream ended.");
    } catch (error) {
      if (this.#connection !== connection) return;
      this.#connection = undefined;
      this.#failed(error);
    }
  }

  #failed(error: unknown): void {
    if (error instanceof VivError && (error.code === "unauthorized" || error.code === "forbidden_origin"))
      return this.#set({ kind: "logged-out" });
    if (this.#away) return;
    this.#lost();
    clearTimeout(this.#retry);
    this.#retry = window.setTimeout(() => void this.#connect(), this.#retryMs);
    this.#retryMs = Math.min(this.#retryMs * 1.7, LONGEST_RETRY_MS);
  }

  #hear(event: VivEvent, newest: number): void {
    this.#heardAt = Date.now();
    this.#last = event.sequence;
    this.#waiting.push(event);
    if (this.#batch === undefined) this.#batch = window.setTimeout(() => this.#flush(), BATCH_MS);
    if (event.sequence >= newest) this.#set({ kind: "live" });
    else this.#set({ kind: "replaying", left: newest - event.sequence });
  }

  #flush(): void {
    const batch = this.#waiting;
    this.#waiting = [];
    this.#batch = undefined;
    this.#tell(batch);
  }

  #tell(batch: readonly VivEvent[]): void {
    for (const listener of this.#listeners) listener(batch);
    this.#changed();
  }

  #tick(): void {
    const now = Date.now();
    const late = now - this.#tickedAt > SLEPT_MS;
    this.#tickedAt = now;
    if (this.#state.kind === "logged-out" || this.#away) return;
    if (late) return this.#now();
    const silent = now - this.#heardAt;
    if (this.#connection !== undefined && silent > PING_MS) void this.#ping();
    if (this.#connection !== undefined && now - Math.max(this.#heardAt, this.#triedAt) > GIVE_UP_MS) return this.#now();
    if (silent > STALE_MS && this.#state.kind === "live") this.#set({ kind: "stale", since: this.#heardAt });
    else if (this.#state.kind === "stale" || this.#state.kind === "offline") this.#changed();
  }

  async #ping(): Promise<void> {
    if (this.#pinging) return;
    this.#pinging = true;
    try {
      const { newestEvent } = await call("status", {}, AbortSignal.timeout(PING_MS));
      this.#heardAt = Date.now();
      if (this.#state.kind === "stale" && newestEvent <= this.#last) this.#set({ kind: "live" });
      this.#expect(newestEvent);
    } catch (error) {
      if (error instanceof VivError && error.code === "unauthorized") this.#drop({ kind: "logged-out" });
    } finally {
      this.#pinging = false;
    }
  }

  /** A stream that does not bring an event that there is has died, though the server answers. */
  #expect(newest: number): void {
    const connection = this.#connection;
    if (connection === undefined || newest <= this.#last) return;
    setTimeout(() => {
      if (this.#connection === connection && this.#last < newest) this.#now();
    }, ON_ITS_WAY_MS);
  }

  /** Connects anew, at once. */
  #now(): void {
    this.#drop();
    clearTimeout(this.#retry);
    this.#retryMs = FIRST_RETRY_MS;
    if (this.#state.kind !== "logged-out") void this.#connect();
  }

  #drop(state?: LiveState): void {
    const connection = this.#connection;
    this.#connection = undefined;
    connection?.abort();
    if (state !== undefined) this.#set(state);
  }

  #lost(): void {
    if (this.#state.kind !== "offline") this.#set({ kind: "offline", since: this.#heardAt });
  }

  #set(state: LiveState): void {
    if (this.#state.kind === state.kind && state.kind === "live") return;
    this.#state = state;
    this.#changed();
  }

  #changed(): void {
    // A new object, so that watchers see that time has passed.
    if (this.#state.kind === "stale" || this.#state.kind === "offline") this.#state = { ...this.#state };
    for (const watcher of this.#watchers) watcher();
  }
}

export const live = new Live();
