/** The events of a run as they come: kept up to a number, and gone on with after a break. */
import { useEffect, useState } from "react";
import type { RunEvent } from "../../../src/base/schema/run.ts";
import { runEvents } from "./client.ts";
import { whileSeen } from "./hidden.ts";
import { useLive } from "./queries.ts";
import { NOTHING_SEEN, RunLog, type SeenRun } from "./run-log.ts";

const BATCH_MS = 60;
const AGAIN_MS = 1_500;

async function follow(run: string, after: number, hear: (event: RunEvent) => void, signal: AbortSignal): Promise<void> {
  let last = after;
  while (!signal.aborted) {
    try {
      for await (const event of runEvents(run, last, signal)) {
        last = event.sequence;
        hear(event);
      }
      return;
    } catch {
      // The line that says how fresh the page is tells of it; the stream goes on where it broke off.
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  }
}

export function useRunEvents(run: string): SeenRun {
  const [seen, setSeen] = useState<SeenRun>(NOTHING_SEEN);
  const isLive = useLive().kind !== "logged-out";
  useEffect(() => {
    if (!isLive) return;
    setSeen(NOTHING_SEEN);
    const log = new RunLog();
    const stop = new AbortController();
    let waiting: RunEvent[] = [];
    let timer: number | undefined;
    const flush = (): void => {
      const batch = waiting;
      waiting = [];
      timer = undefined;
      log.push(batch);
      setSeen(log.seen());
    };
    let last = 0;
    const hear = (event: RunEvent): void => {
      last = event.sequence;
      waiting.push(event);
      if (timer === undefined) timer = window.setTimeout(flush, BATCH_MS);
    };
    let shown = new AbortController();
    const begin = (): void => {
      shown = new AbortController();
      void follow(run, last, hear, AbortSignal.any([stop.signal, shown.signal]));
    };
    begin();
    const unwatch = whileSeen(() => shown.abort(), begin);
    return () => {
      unwatch();
      stop.abort();
      clearTimeout(timer);
    };
  }, [run, isLive]);
  return seen;
}
