/** Events over breaks of the connection, and things that are read again whenever an event says that they changed. */
import { VivError } from "../../base/schema/errors.ts";
import type { Connection } from "./connection.ts";
import { cancelled } from "./error.ts";
import type { VivariumEvent } from "./types/events.ts";

const FIRST_RETRY_MS = 50;
const LONGEST_RETRY_MS = 2000;
/** Events say when to look; this is for what has none. */
const LOOK_AGAIN_MS = 5000;

export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done, { once: true });
  });
}

function isAway(error: unknown): boolean {
  return error instanceof VivError && error.code === "server_unreachable";
}

interface Source<Item> {
  /** Opens the stream after a number. */
  open(after: number, signal: AbortSignal): Promise<AsyncIterable<Item>>;
  numberOf(item: Item): number;
  /** Whether an orderly end of the stream is the end of all. */
  isOver(): Promise<boolean>;
}

/** Items from a number on, each once. A stream that breaks is opened again where it broke; only the first opening may fail. */
export async function* resumed<Item>(
  source: Source<Item>,
  from: number,
  caller: AbortSignal | undefined,
): AsyncGenerator<Item, void, void> {
  const leaving = new AbortController();
  const signal = caller === undefined ? leaving.signal : AbortSignal.any([caller, leaving.signal]);
  let after = from;
  let heard = false;
  let wait = FIRST_RETRY_MS;
  try {
    while (!signal.aborted) {
      try {
        for await (const item of await source.open(after, signal)) {
          after = source.numberOf(item);
          heard = true;
          wait = FIRST_RETRY_MS;
          yield item;
        }
        heard = true;
        if (signal.aborted || (await source.isOver())) return;
      } catch (error) {
        if (signal.aborted) return;
        if (!heard || !isAway(error)) throw error;
      }
      await pause(wait, signal);
      wait = Math.min(wait * 2, LONGEST_RETRY_MS);
    }
  } finally {
    leaving.abort();
  }
}

/** Events after a number, then live ones. */
export function follow(
  connection: Connection,
  options: { readonly after: number; readonly sandbox?: string | undefined; readonly signal?: AbortSignal | undefined },
): AsyncGenerator<VivariumEvent, void, void> {
  const about = options.sandbox === undefined ? {} : { sandbox: options.sandbox };
  return resumed(
    {
      open: (after, signal) =>
        connection.use(async (client) => client.events(after, { ...about, signal }) as AsyncIterable<VivariumEvent>, signal),
      numberOf: ({ sequence }) => sequence,
      isOver: async () => false,
    },
    options.after,
    options.signal,
  );
}

export interface Watched<State> {
  look(): Promise<State>;
  /** Whether an event is about it. */
  concerns(event: VivariumEvent): boolean;
  isOver(state: State): boolean;
  readonly onUpdate?: ((state: State) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Waits until something is over; its last state. */
export async function untilOver<State>(connection: Connection, watched: Watched<State>): Promise<State> {
  const { signal: caller, onUpdate } = watched;
  const { newest } = await connection.call("listEvents", { limit: 1 }, caller);
  const leaving = new AbortController();
  const signal = caller === undefined ? leaving.signal : AbortSignal.any([caller, leaving.signal]);
  const changes = new Changes();
  void changes.hear(follow(connection, { after: newest, signal }), watched);
  try {
    for (;;) {
      if (caller?.aborted === true) throw cancelled(caller);
      const state = await watched.look().catch((error: unknown) => {
        if (!isAway(error)) throw error;
        return undefined;
      });
      if (state !== undefined) {
        onUpdate?.(state);
        if (watched.isOver(state)) return state;
      }
      await changes.next(signal);
    }
  } finally {
    leaving.abort();
  }
}

/** Several changes between two looks are one. */
class Changes {
  #changed = false;
  #wake: (() => void) | undefined;

  async hear(events: AsyncIterable<VivariumEvent>, { concerns }: Pick<Watched<unknown>, "concerns">): Promise<void> {
    try {
      for await (const event of events) {
        if (!concerns(event)) continue;
        this.#changed = true;
        this.#wake?.();
      }
    } catch {
      // The fault that broke the stream also meets the next look, and is reported there.
    }
  }

  async next(signal: AbortSignal): Promise<void> {
    if (!this.#changed) {
      const woken = new AbortController();
      this.#wake = () => woken.abort();
      await pause(LOOK_AGAIN_MS, AbortSignal.any([signal, woken.signal]));
    }
    this.#changed = false;
  }
}
