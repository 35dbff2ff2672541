/** The events of a run as they come: kept up to a number, and gone on with after a break. */
import { useEffect, useState } from "react";
import type { RunEvent } from "../../../src/base/schema/run.ts";
import { call, runEvents } from "./client.ts";
import { goOn } from "./going-on.ts";
import { useLive } from "./queries.ts";
import { NOTHING_SEEN, RunLog, type SeenRun } from "./run-log.ts";

const BATCH_MS = 60;

export function useRunEvents(run: string): SeenRun {
  const [seen, setSeen] = useState<SeenRun>(NOTHING_SEEN);
  const isLive = useLive().kind !== "logged-out";
  useEffect(() => {
    if (!isLive) return;
    setSeen(NOTHING_SEEN);
    const log = new RunLog();
    let waiting: RunEvent[] = [];
    let timer: number | undefined;
    const flush = (): void => {
      const batch = waiting;
      waiting = [];
      timer = undefined;
      log.push(batch);
      setSeen(log.seen());
    };
    const stop = goOn<RunEvent>({
      after: 0,
      open: (after, signal) => runEvents(run, after, signal),
      hear: (event) => {
        waiting.push(event);
        timer ??= window.setTimeout(flush, BATCH_MS);
      },
      isOver: async (signal) => (await call("inspectRun", { run }, signal)).endedAt !== null,
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [run, isLive]);
  return seen;
}
