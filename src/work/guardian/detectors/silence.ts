/** No sign of life. While a tool runs, a model answers, a rate limit or a person is waited for, the clock stands still. */
import type { Detector } from "../finding.ts";
import { quoted } from "../likeness.ts";
import { isBusy, type Picture } from "../picture.ts";
import { THRESHOLDS } from "../thresholds.ts";

export const silence: Detector = (picture, { patience = 1 }) => (isBusy(picture) ? endless(picture, patience) : idle(picture, patience));

function idle({ idleMs, seen, quietSince, now, sequence }: Picture, patience: number): ReturnType<Detector> {
  const [needed, confidence] = seen.modelRequests === undefined ? [THRESHOLDS.unseenModelSilenceMs, 0.7] : [THRESHOLDS.silenceMs, 0.9];
  if (idleMs < patience * needed) return undefined;
  return {
    concern: "stuck",
    confidence,
    evidence: `Nothing was heard of the agent for ${minutes(idleMs)} (since event ${sequence}), and it waits for nothing that the server knows of: no tool runs, no model request is open, no person is asked.`,
    key: `silence after ${sequence}`,
    since: quietSince,
    at: now,
  };
}

/** What is under way may take long, but not for ever. A person decides: it can't be known from here. */
function endless({ open, busyMs, quietSince, now, seen, turnOpen }: Picture, patience: number): ReturnType<Detector> {
  if (!turnOpen) return undefined;
  const [oldest] = open;
  const needed = oldest === undefined ? THRESHOLDS.modelWithoutSignMs : THRESHOLDS.toolWithoutSignMs;
  if (busyMs < patience * needed) return undefined;
  const what =
    oldest === undefined
      ? `${seen.modelRequests ?? 0} model request(s) got no answer`
      : `${oldest.tool} (event ${oldest.sequence}) gave no output, changed no file and took no CPU time`;
  return {
    concern: "stuck",
    confidence: 0.55,
    evidence: `For ${minutes(busyMs)} ${what}${oldest === undefined ? "" : `: ${quoted(JSON.stringify(oldest.input), 120)}`}.`,
    key: `silence of ${oldest?.call ?? "the model"}`,
    since: quietSince,
    at: now,
  };
}

function minutes(ms: number): string {
  return ms < 60_000 ? `${Math.round(ms / 1000)} seconds` : `${Math.floor(ms / 60_000)} minutes`;
}
