/** The last events and those that come, for the page that shows them all. Nothing is kept once that page is left. */
import { useEffect, useState } from "react";
import type { VivEvent } from "../../../src/base/schema/event.ts";
import { events } from "./client.ts";
import { whileSeen } from "./hidden.ts";

/** A tab that is open for a day must not grow: what is more than this is let go, the oldest first. */
export const KEPT_EVENTS = 50_000;
/** Let go in portions, so that an event that comes does not copy all others. */
const PORTION = 1_000;
const BATCH_MS = 50;
const AGAIN_MS = 1_500;

export interface EventHistory {
  readonly events: readonly VivEvent[];
  /** How many have come in all, with those that were let go. */
  readonly count: number;
}

async function follow(after: number, hear: (event: VivEvent) => void, signal: AbortSignal): Promise<void> {
  let last = after;
  while (!signal.aborted) {
    try {
      for await (const event of events(last, signal)) {
        last = event.sequence;
        hear(event);
      }
    } catch {
      // The line that says how fresh the page is tells of it; the stream goes on where it broke off.
    }
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
}

/** Events from a while before `newest` on. */
export function useEventHistory(newest: number): EventHistory {
  const [history, setHistory] = useState<EventHistory>({ events: [], count: 0 });
  useEffect(() => {
    let kept: VivEvent[] = [];
    let count = 0;
    let last = Math.max(0, newest - KEPT_EVENTS);
    let waiting: VivEvent[] = [];
    let timer: number | undefined;
    const flush = (): void => {
      timer = undefined;
      const over = kept.length + waiting.length - KEPT_EVENTS;
      // A new array for each batch: what is drawn looks at the one before.
      kept = [...(over > 0 ? kept.slice(over + PORTION) : kept), ...waiting];
      count += waiting.length;
      waiting = [];
      setHistory({ events: kept, count });
    };
    const hear = (event: VivEvent): void => {
      last = event.sequence;
      waiting.push(event);
      timer ??= window.setTimeout(flush, BATCH_MS);
    };
    let shown = new AbortController();
    const begin = (): void => {
      shown = new AbortController();
      void follow(last, hear, shown.signal);
    };
    begin();
    const unwatch = whileSeen(() => shown.abort(), begin);
    return () => {
      unwatch();
      shown.abort();
      clearTimeout(timer);
    };
  }, [newest]);
  return history;
}
