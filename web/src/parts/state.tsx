/** A state as a shape, a word and a colour: never the colour alone. */
import type { ReactNode } from "react";

export type Tone = "running" | "waiting" | "failed" | "passed" | "stopped";

const SHAPES: Readonly<Record<Tone, ReactNode>> = {
  running: (
    <>
      <circle cx="8" cy="8" r="5.5" strokeDasharray="2.2 2.2" />
      <circle cx="8" cy="8" r="2" fill="currentColor" stroke="none" />
    </>
  ),
  waiting: (
    <>
      <circle cx="8" cy="8" r="5.5" />
      <path d="M8 4.800V8l2.2 1.5" />
    </>
  ),
  failed: (
    <>
      <circle cx="8" cy="8" r="5.5" fill="currentColor" stroke="none" />
      <path d="m6 6 4 4M10 6l-4 4" stroke="var(--raised)" />
    </>
  ),
  passed: (
    <>
      <circle cx="8" cy="8" r="5.5" fill="currentColor" stroke="none" />
      <path d="m5.6 8.2 1.7 1.7 3.1-3.5" stroke="var(--raised)" />
    </>
  ),
  stopped: (
    <>
      <circle cx="8" cy="8" r="5.5" />
      <path d="M5.8 8h4.4" />
    </>
  ),
};

export function StateShape({ tone }: { readonly tone: Tone }): ReactNode {
  return (
    <span className={`state is-${tone}`}>
      <svg
        viewBox="0 0 16 16"
        fill="none"
        stroke="currentColor"
        strokeWidth="1.5"
        strokeLinecap="round"
        strokeLinejoin="round"
        aria-hidden="true"
      >
        {SHAPES[tone]}
      </svg>
    </span>
  );
}

export function State({ tone, children }: { readonly tone: Tone; readonly children: ReactNode }): ReactNode {
  return (
    <span className={`state pill is-${tone}`}>
      <StateShape tone={tone} />
      {children}
    </span>
  );
}

/** The tone of a state of a sandbox, a run, an experiment, an attempt, a stage or a promotion. */
export function toneOf(state: string, outcome?: string | null): Tone {
  if (outcome !== undefined && outcome !== null) return outcome === "done" ? "passed" : outcome === "cancelled" ? "stopped" : "failed";
  if (["failed", "rolled-back", "denied", "broken"].includes(state)) return "failed";
  if (["done", "completed", "passed", "applied", "approved", "used", "answered"].includes(state)) return "passed";
  if (["waiting", "choosing", "paused", "held"].includes(state)) return "waiting";
  if (["undone", "discarded", "cancelled", "expired", "not-set-up", "queued", "pending"].includes(state)) return "stopped";
  return "running";
}
