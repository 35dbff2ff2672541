/** Automations and firings in words and tones. */
import type { Automation, Firing } from "../../../src/base/schema/automation.ts";
import type { Tone } from "../parts/state.tsx";
import { dollars, firstLine, plural } from "../parts/words.ts";

const AUTOMATION_TONES: Readonly<Record<Automation["state"], Tone>> = {
  active: "passed",
  paused: "stopped",
  muted: "waiting",
  broken: "failed",
};

/** One that waits, and has something in its way that may pass, such as a remote that does not answer, is not well. */
export function automationWords({ state, reason }: Automation): { tone: Tone; text: string } {
  if (state === "active" && reason !== null) return { tone: "waiting", text: "active, in trouble" };
  return { tone: AUTOMATION_TONES[state], text: state };
}

const FIRING_TONES: Readonly<Record<Firing["state"], Tone>> = {
  seen: "stopped",
  triaged: "running",
  working: "running",
  verified: "running",
  promoted: "passed",
  waiting: "waiting",
  done: "passed",
  alerted: "waiting",
  failed: "failed",
  muted: "stopped",
  undone: "failed",
};

const FIRING_WORDS: Readonly<Record<Firing["state"], string>> = {
  seen: "not begun",
  triaged: "begins",
  working: "is tried in a sandbox",
  verified: "verified",
  promoted: "promoted",
  waiting: "waits for you",
  done: "nothing to do",
  alerted: "alert",
  failed: "failed",
  muted: "muted",
  undone: "undone",
};

export function firingTone(state: Firing["state"]): Tone {
  return FIRING_TONES[state];
}

export function firingWord(state: Firing["state"]): string {
  return FIRING_WORDS[state];
}

/** A state as a step that was taken. */
export function stepWord(state: Firing["state"]): string {
  return { seen: "seen", triaged: "decided", working: "tried in a sandbox", waiting: "proposed" }[state as string] ?? FIRING_WORDS[state];
}

/** What was seen first, and how much more. */
export function seenLine({ seen, count, kind }: Firing): string {
  const first = firstLine(seen[0]?.text ?? kind);
  return count > 1 ? `${first} and ${count - 1} more` : first;
}

/** What came of it: the files, or the reason. */
export function resultLine({ state, reason, files, cost }: Firing): string {
  const isChange = state === "promoted" || state === "waiting";
  const named = files.length > 3 ? `${files.slice(0, 2).join(", ")} and ${plural(files.length - 2, "more file")}` : files.join(", ");
  const what = isChange && named !== "" ? named : reason;
  return [firingWord(state), what, cost > 0 ? dollars(cost) : null].filter((part) => part !== null && part !== "").join(" · ");
}

/** "in 3 h", of a time to come. */
export function until(iso: string, now: number): string {
  const ms = Date.parse(iso) - now;
  const minutes = Math.round(ms / 60_000);
  if (minutes < 1) return "within a minute";
  if (minutes < 90) return `in ${minutes} min`;
  const hours = Math.round(minutes / 60);
  return hours < 48 ? `in ${hours} h` : `in ${Math.round(hours / 24)} days`;
}
