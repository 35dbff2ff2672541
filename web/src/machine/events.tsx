/** Everything that happened, the newest first: kept up to a number, and only what is on the screen is drawn. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { useDeferredValue, useLayoutEffect, useMemo, useRef, useState, type ReactNode } from "react";
import type { VivEvent } from "../../../src/base/schema/event.ts";
import { Answered, Command, Empty } from "../parts/parts.tsx";
import { clock } from "../parts/words.ts";
import { useAnswer } from "../server/queries.ts";
import { useEventHistory } from "../server/event-history.ts";

const ROW_PX = 30;
const texts = new WeakMap<VivEvent, string>();

/** The details as text: made once, when they are drawn or searched. */
function textOf(event: VivEvent): string {
  const made = texts.get(event) ?? JSON.stringify(event.data);
  texts.set(event, made);
  return made;
}

function fits(event: VivEvent, wanted: string): boolean {
  return event.type.includes(wanted) || (event.sandbox ?? "").includes(wanted) || textOf(event).toLowerCase().includes(wanted);
}

function Rows({ events, count }: { readonly events: readonly VivEvent[]; readonly count: number }): ReactNode {
  const frame = useRef<HTMLDivElement>(null);
  const before = useRef(count);
  const virtual = useVirtualizer({
    count: events.length,
    estimateSize: () => ROW_PX,
    getScrollElement: () => frame.current,
    getItemKey: (index) => events[events.length - 1 - index]?.sequence ?? index,
    overscan: 10,
  });
  // What a person reads stays where it is while newer events come in above it.
  useLayoutEffect(() => {
    const come = count - before.current;
    before.current = count;
    if (frame.current !== null && frame.current.scrollTop > ROW_PX) frame.current.scrollTop += come * ROW_PX;
  }, [count]);
  return (
    <div ref={frame} className="card events" tabIndex={0} role="log" aria-label="Events, the newest first" aria-live="off">
      <ul className="small" style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map(({ index, key, start }) => {
          const event = events[events.length - 1 - index];
          return (
            event !== undefined && (
              <li key={key} data-at={event.at} style={{ transform: `translateY(${start}px)`, height: ROW_PX }}>
                <span className="number muted">{event.sequence}</span>
                <time className="number muted" dateTime={event.at}>
                  {clock(event.at)}
                </time>
                <span className="strong cut">{event.type}</span>
                <code className="cut muted">{textOf(event)}</code>
              </li>
            )
          );
        })}
      </ul>
    </div>
  );
}

function List({ newest }: { readonly newest: number }): ReactNode {
  const { events, count } = useEventHistory(newest);
  const [wanted, setWanted] = useState("");
  const looked = useDeferredValue(wanted.trim().toLowerCase());
  const found = useMemo(() => (looked === "" ? events : events.filter((event) => fits(event, looked))), [events, looked]);
  return (
    <>
      <div className="row wraps">
        <input
          className="field find"
          type="search"
          aria-label="Find events"
          placeholder="Find events by type, sandbox or details"
          value={wanted}
          onChange={(event) => setWanted(event.target.value)}
        />
        <span className="small muted number">
          {looked === "" ? `${events.length} events` : `${found.length} of ${events.length} events`}
        </span>
        <Command line="viv events --follow" />
      </div>
      {found.length === 0 ? (
        <div className="card">
          <Empty>{events.length === 0 ? "Nothing has happened yet." : "No event fits."}</Empty>
        </div>
      ) : (
        <Rows events={found} count={looked === "" ? count : 0} />
      )}
    </>
  );
}

export function Events(): ReactNode {
  const status = useAnswer("status", {});
  const first = useRef<number>(undefined);
  first.current ??= status.data?.newestEvent;
  return (
    <Answered query={status} what="events">
      {({ newestEvent }) => <List newest={first.current ?? newestEvent} />}
    </Answered>
  );
}
