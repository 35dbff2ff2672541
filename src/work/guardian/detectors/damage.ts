/** Edits of files that the agent must leave alone, and files that are gone in numbers. A person is asked first. */
import type { Detector } from "../finding.ts";
import { quoted } from "../likeness.ts";
import { isMadeAgain } from "../made-again.ts";
import { THRESHOLDS } from "../thresholds.ts";

export const damage: Detector = ({ touches, seen, now, sequence }, { protects }) => {
  const hit = touches.filter(({ path }) => protects(path) && !isMadeAgain(path));
  const [first] = hit;
  const newest = hit.at(-1);
  if (first !== undefined && newest !== undefined) {
    const paths = [...new Set(hit.map(({ path }) => path))];
    return {
      concern: "damage",
      confidence: 0.95,
      evidence: `Protected files were changed (events ${first.sequence} to ${newest.sequence}): ${paths
        .slice(0, 5)
        .map((path) => quoted(path))
        .join(", ")}${paths.length > 5 ? ` and ${paths.length - 5} more` : ""}.`,
      key: `damage of ${[...paths].sort().join(" ")}`,
      since: first.at,
      at: newest.at,
    };
  }
  const { added, deleted, project } = seen.files ?? { added: 0, deleted: 0, project: null };
  const lost = deleted - added;
  if (project === null || lost < THRESHOLDS.lostFiles || lost < project * THRESHOLDS.lostShare) return undefined;
  return {
    concern: "damage",
    confidence: 0.8,
    evidence: `${deleted} of the project's ${project} files are deleted in the clone, and ${added} were added (seen at event ${sequence}).`,
    key: "damage by deletion",
    since: now,
    at: now,
  };
};
