/** The last events and those that come, for the page that shows them all. Nothing is kept once that page is left. */
import { useEffect, useState } from "react";
import type { VivEvent } from "../../../src/base/schema/event.ts";
import { events } from "./client.ts";
import { goOn } from "./going-on.ts";

/** A tab that is open for a day must not grow: what is more than this is let go, the oldest first. */
export const KEPT_EVENTS = 50_000;
/** Let go in portions, so that an event that comes does not copy all others. */
const PORTION = 1_000;
const BATCH_MS = 50;

export interface EventHistory {
  readonly events: readonly VivEvent[];
  /** How many have come in all, with those that were let go. */
  readonly count: number;
}

/** Events from a while before `newest` on. */
export function useEventHistory(newest: number): EventHistory {
  const [history, setHistory] = useState<EventHistory>({ events: [], count: 0 });
  useEffect(() => {
    let kept: VivEvent[] = [];
    let count = 0;
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
    const stop = goOn<VivEvent>({
      after: Math.max(0, newest - KEPT_EVENTS),
      open: events,
      hear: (event) => {
        waiting.push(event);
        timer ??= window.setTimeout(flush, BATCH_MS);
      },
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [newest]);
  return history;
}
