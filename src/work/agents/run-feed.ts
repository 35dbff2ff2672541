/** Events of runs for listeners: first what a listener missed, from the store, then live ones, in order and without a gap. */
import type { RunEvent } from "../../base/schema/run.ts";
import type { Store } from "../../base/store/store.ts";

const PAGE = 500;
/** Events of a run that are kept in memory for listeners that are up to date. */
const RECENT = 2_000;

interface Channel {
  recent: RunEvent[];
  readonly waiting: Set<() => void>;
  listeners: number;
}

export class RunFeed {
  readonly #store: Store;
  readonly #channels = new Map<string, Channel>();
  #closed = false;

  constructor(store: Store) {
    this.#store = store;
  }

  publish(run: string, events: readonly RunEvent[]): void {
    const channel = this.#channels.get(run);
    if (channel === undefined) return;
    channel.recent = [...channel.recent, ...events].slice(-RECENT);
    this.wake(run);
  }

  /** Lets listeners look again, also where there is no new event. */
  wake(run: string): void {
    const channel = this.#channels.get(run);
    if (channel === undefined) return;
    const waiting = [...channel.waiting];
    channel.waiting.clear();
    for (const resume of waiting) resume();
  }

  close(): void {
    this.#closed = true;
    for (const run of this.#channels.keys()) this.wake(run);
  }

  async *listen(run: string, after: number, signal: AbortSignal, isOver: () => Promise<boolean>): AsyncGenerator<RunEvent, void, void> {
    const channel = this.#open(run);
    const wake = (): void => this.wake(run);
    signal.addEventListener("abort", wake);
    try {
      let position = after;
      while (!signal.aborted && !this.#closed) {
        // Asked before the page is read: what ended before has all its events there.
        const over = await isOver();
        const heard = Promise.withResolvers<void>();
        channel.waiting.add(heard.resolve);
        const page = await this.#page(channel, run, position);
        for (const event of page) {
          position = event.sequence;
          yield event;
          if (signal.aborted) return;
        }
        if (page.length > 0) continue;
        if (over) return;
        if (!signal.aborted) await heard.promise;
      }
    } finally {
      signal.removeEventListener("abort", wake);
      channel.listeners -= 1;
      if (channel.listeners === 0) this.#channels.delete(run);
    }
  }

  #open(run: string): Channel {
    const channel = this.#channels.get(run) ?? { recent: [], waiting: new Set(), listeners: 0 };
    channel.listeners += 1;
    this.#channels.set(run, channel);
    return channel;
  }

  async #page({ recent }: Channel, run: string, after: number): Promise<readonly RunEvent[]> {
    const first = recent[0]?.sequence;
    if (first !== undefined && first <= after + 1) return recent.slice(after + 1 - first);
    return this.#store.runEvents.list({ run, after, limit: PAGE });
  }
}
