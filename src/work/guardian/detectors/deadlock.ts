/** Runs that wait for each other. One of them is told: the one with the greatest id, so that not all give way at once. */
import type { Detector } from "../finding.ts";
import { THRESHOLDS } from "../thresholds.ts";

export const deadlock: Detector = ({ seen, now, sequence, waitsSince }, { run }) => {
  if (waitsSince === null || now - waitsSince < THRESHOLDS.deadlockMs) return undefined;
  const ring = ringFrom(seen.waits ?? {}, run);
  if (ring === undefined || ring.some((other) => other > run)) return undefined;
  return {
    concern: "deadlock",
    confidence: 0.95,
    evidence: `Runs wait for each other: ${[...ring, run].join(" waits for ")} (at event ${sequence}). None of them can go on.`,
    key: `deadlock ${[...ring].sort().join(" ")}`,
    since: waitsSince,
    at: now,
  };
};

/** The way from a run back to itself, without its end. */
function ringFrom(waits: Readonly<Record<string, readonly string[]>>, run: string): string[] | undefined {
  const seen = new Set<string>();
  const paths: string[][] = [[run]];
  for (let path = paths.pop(); path !== undefined; path = paths.pop()) {
    for (const next of waits[path.at(-1) ?? run] ?? []) {
      if (next === run) return path;
      if (!seen.has(next)) paths.push([...path, next]);
      seen.add(next);
    }
  }
  return undefined;
}
