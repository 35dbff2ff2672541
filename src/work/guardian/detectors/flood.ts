/** More at once than a person would let it do: calls, agents of its own, processes. */
import type { Detector } from "../finding.ts";
import { THRESHOLDS } from "../thresholds.ts";

export const flood: Detector = ({ callTimes, open, seen, now, sequence }) => {
  const lately = callTimes.filter((time) => now - time < 60_000).length;
  const agents = open.filter(({ kind }) => kind === "agent").length;
  const processes = seen.use?.processes ?? 0;
  const what =
    lately >= THRESHOLDS.callsPerMinute
      ? `made ${lately} tool calls within a minute`
      : agents >= THRESHOLDS.agentsAtOnce
        ? `has ${agents} agents of its own at work at once`
        : open.length >= THRESHOLDS.callsAtOnce
          ? `has ${open.length} tool calls under way at once`
          : processes >= THRESHOLDS.processShare
            ? `has ${Math.floor(processes * 100)} % of the processes it may have`
            : undefined;
  if (what === undefined) return undefined;
  return {
    concern: "flood",
    confidence: 0.85,
    evidence: `The agent ${what} (up to event ${sequence}).`,
    key: "flood",
    since: callTimes[0] ?? now,
    at: now,
  };
};
