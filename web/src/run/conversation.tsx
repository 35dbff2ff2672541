/** A conversation as it grows, of any length: only what is on the screen is drawn, and the newest stays in sight until one scrolls up. */
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useLayoutEffect, useRef, useState, type ReactNode } from "react";
import type { Entry } from "../server/run-log.ts";
import { ConversationEntry } from "./conversation-entry.tsx";

/** As near to the end as this is at the end. */
const NEAR_PX = 120;
const GUESSED_PX = 38;
const GAP_PX = 6;

/** The bar at the lower edge of a phone. */
const BELOW_PX = 80;

/** How far down the newest and the box below it are in sight: on a phone, more stands below them. */
function newestAt(): number {
  const last = document.documentElement.scrollHeight - innerHeight;
  const bottom = document.querySelector(".talking")?.getBoundingClientRect().bottom;
  return bottom === undefined ? last : Math.max(0, Math.min(last, bottom + scrollY - innerHeight + BELOW_PX));
}

function isAtEnd(): boolean {
  return Math.abs(newestAt() - scrollY) < NEAR_PX;
}

/** Whether the end is in sight, as the person scrolls. */
function useFollowing(grows: boolean): readonly [boolean, (on: boolean) => void] {
  const [following, setFollowing] = useState(grows);
  useEffect(() => {
    const scrolled = (): void => setFollowing(isAtEnd());
    addEventListener("scroll", scrolled, { passive: true });
    return () => removeEventListener("scroll", scrolled);
  }, []);
  return [following, setFollowing];
}

export function Conversation({
  entries,
  cut,
  grows,
}: {
  readonly entries: readonly Entry[];
  readonly cut: boolean;
  /** Whether the run goes on. */
  readonly grows: boolean;
}): ReactNode {
  const list = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [following, setFollowing] = useFollowing(grows);
  useLayoutEffect(() => {
    setTop((list.current?.getBoundingClientRect().top ?? 0) + scrollY);
  }, [cut]);
  const virtual = useWindowVirtualizer({
    count: entries.length,
    estimateSize: () => GUESSED_PX,
    getItemKey: (index) => entries[index]?.key ?? index,
    gap: GAP_PX,
    overscan: 12,
    scrollMargin: top,
  });
  const size = virtual.getTotalSize();
  useEffect(() => {
    if (grows && following) scrollTo(0, newestAt());
  }, [grows, following, size]);
  return (
    <div className="conversation-frame">
      {cut && <p className="muted small">The beginning is not kept in this page. `viv context` has all of it.</p>}
      <div ref={list} className="conversation" style={{ height: size }}>
        {virtual.getVirtualItems().map(({ index, key, start }) => {
          const entry = entries[index];
          return (
            <div
              key={key}
              ref={virtual.measureElement}
              data-index={index}
              className="entry"
              style={{ transform: `translateY(${start - top}px)` }}
            >
              {entry !== undefined && <ConversationEntry entry={entry} />}
            </div>
          );
        })}
      </div>
      {grows && !following && (
        <button type="button" className="button small newest" onClick={() => setFollowing(true)}>
          ↓ To the newest
        </button>
      )}
    </div>
  );
}
