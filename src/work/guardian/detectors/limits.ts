/** How near a run is to what it may use. The engine holds the limits; the guardian warns, and says in good time what was reached. */
import type { Detector } from "../finding.ts";
import { THRESHOLDS } from "../thresholds.ts";

function counted(what: "budget" | "steps", reached: (share: number) => boolean): Detector {
  return ({ seen, now, sequence }) => {
    const share = seen.use?.[what] ?? 0;
    if (share < THRESHOLDS.nearShare) return undefined;
    const isReached = reached(share);
    return {
      concern: isReached ? "limit_reached" : "near_limit",
      confidence: 1,
      evidence: `The run has used ${Math.floor(share * 100)} % of its ${what} (at event ${sequence}).${isReached ? "" : " Finish the most important part first."}`,
      key: `${what} ${isReached ? 100 : 80}`,
      since: now,
      at: now,
    };
  };
}

export const budget = counted("budget", (share) => share >= 1);
/** The last step is the agent's own, as what it says after that: only one more is too many. */
export const steps = counted("steps", (share) => share > 1);

export const disk: Detector = ({ seen, now, sequence }) => {
  const share = seen.use?.disk ?? 0;
  if (share < THRESHOLDS.nearSpaceShare) return undefined;
  return {
    concern: "low_space",
    confidence: 0.9,
    evidence: `The sandbox has used ${Math.floor(share * 100)} % of its disk (at event ${sequence}); at 100 % writing fails.`,
    key: "disk",
    since: now,
    at: now,
  };
};

export const memory: Detector = ({ seen, now, sequence, highMemorySince }, { patience = 1 }) => {
  if (highMemorySince === null || now - highMemorySince < patience * THRESHOLDS.highMemoryMs) return undefined;
  return {
    concern: "low_space",
    confidence: 0.8,
    evidence: `The sandbox has used ${Math.floor((seen.use?.memory ?? 0) * 100)} % of its memory for ${Math.floor((now - highMemorySince) / 1000)} seconds (at event ${sequence}); at 100 % its largest process is ended.`,
    key: "memory",
    since: highMemorySince,
    at: now,
  };
};
