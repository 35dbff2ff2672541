/** The event log for listeners: first the events that a listener missed, then live ones, in order and without a gap. */
import { VivError } from "../schema/errors.ts";
import type { VivEvent } from "../schema/event.ts";
import { LIMITS } from "../schema/limits.ts";
import type { Store } from "../store/store.ts";

const PAGE_ROWS = 200;

export interface ListenOptions {
  /** Id of a sandbox: only its events. */
  readonly sandbox?: string | undefined;
  readonly signal: AbortSignal;
}

/** Memory an event holds, near enough for a bound. */
function sizeOf(event: VivEvent): number {
  return 200 + JSON.stringify(event.data).length;
}

/** One listener: a bounded queue of live events. When it overflows, the queue is dropped and the listener goes back to the log. */
class Listener {
  #position: number;
  #queue: { event: VivEvent; bytes: number }[] = [];
  #bytes = 0;
  #overflowed = true;
  #wake: (() => void) | undefined;
  readonly #sandbox: string | undefined;

  constructor(after: number, sandbox: string | undefined) {
    this.#position = after;
    this.#sandbox = sandbox;
  }

  get bytes(): number {
    return this.#bytes;
  }

  wake(): void {
    this.#wake?.();
  }

  offer(event: VivEvent, bytes: number): void {
    if (this.#overflowed) return;
    if (this.#sandbox !== undefined && event.sandbox !== this.#sandbox) {
      if (this.#queue.length === 0) this.#position = event.sequence;
      return;
    }
    if (this.#bytes + bytes > LIMITS.eventListenerBufferBytes) {
      this.#clear();
      this.#overflowed = true;
    } else {
      this.#queue.push({ event, bytes });
      this.#bytes += bytes;
    }
    this.wake();
  }

  #clear(): void {
    this.#queue = [];
    this.#bytes = 0;
  }

  async *run(store: Store, signal: AbortSignal): AsyncGenerator<VivEvent, void, void> {
    while (!signal.aborted) {
      if (this.#overflowed) yield* this.#replay(store, signal);
      const next = this.#queue.shift();
      if (next === undefined) {
        if (!this.#overflowed) await this.#sleep(signal);
        continue;
      }
      this.#bytes -= next.bytes;
      if (next.event.sequence > this.#position) yield this.#advance(next.event);
    }
  }

  async *#replay(store: Store, signal: AbortSignal): AsyncGenerator<VivEvent, void, void> {
    for (;;) {
      if (this.#position > 0) await this.#refuseTrimmed(store);
      const page = await store.events.list({
        after: this.#position,
        limit: PAGE_ROWS,
        ...(this.#sandbox === undefined ? {} : { sandbox: this.#sandbox }),
      });
      for (const event of page) {
        if (signal.aborted) return;
        yield this.#advance(event);
      }
      if (page.length === PAGE_ROWS) continue;
      if (!this.#overflowed) return;
      // From here on the queue fills; the next page holds what was committed before.
      this.#overflowed = false;
    }
  }

  async #refuseTrimmed(store: Store): Promise<void> {
    const { oldest } = await store.events.range();
    if (this.#position + 1 >= oldest) return;
    throw new VivError("not_found", `Event ${this.#position + 1} is no longer kept; the oldest is ${oldest}.`, {
      remedy: `Start again after event ${oldest - 1}.`,
    });
  }

  #advance(event: VivEvent): VivEvent {
    this.#position = event.sequence;
    return event;
  }

  async #sleep(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    this.#wake = undefined;
  }
}

export class EventFeed {
  readonly #store: Store;
  readonly #listeners = new Set<Listener>();
  readonly #unsubscribe: () => void;

  constructor(store: Store) {
    this.#store = store;
    this.#unsubscribe = store.onEvents((events) => this.#publish(events));
  }

  /** Bytes held for listeners that have not read them yet. */
  get bufferedBytes(): number {
    return [...this.#listeners].reduce((sum, listener) => sum + listener.bytes, 0);
  }

  get listeners(): number {
    return this.#listeners.size;
  }

  /** Events after a sequence number, then live ones. Throws when the listener asks for, or lags behind to, events that are no longer kept. */
  listen(after: number, options: ListenOptions): AsyncGenerator<VivEvent, void, void> {
    this.#refuseMore();
    return this.#run(after, options);
  }

  #refuseMore(): void {
    if (this.#listeners.size >= LIMITS.maxEventListeners) {
      throw new VivError("no_capacity", `There are ${LIMITS.maxEventListeners} event listeners already.`, {
        remedy: "Close a listener first.",
      });
    }
  }

  async *#run(after: number, options: ListenOptions): AsyncGenerator<VivEvent, void, void> {
    if (options.signal.aborted) return;
    // Several may have been let in before the first of them began to read.
    this.#refuseMore();
    const listener = new Listener(after, options.sandbox);
    const wake = (): void => listener.wake();
    this.#listeners.add(listener);
    options.signal.addEventListener("abort", wake);
    try {
      yield* listener.run(this.#store, options.signal);
    } finally {
      options.signal.removeEventListener("abort", wake);
      this.#listeners.delete(listener);
    }
  }

  close(): void {
    this.#unsubscribe();
  }

  #publish(events: readonly VivEvent[]): void {
    if (this.#listeners.size === 0) return;
    for (const event of events) {
      const bytes = sizeOf(event);
      for (const listener of this.#listeners) listener.offer(event, bytes);
    }
  }
}
