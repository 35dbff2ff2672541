/** All detectors over one picture. */
import { alternation, repeat } from "./detectors/cycles.ts";
import { damage } from "./detectors/damage.ts";
import { drift } from "./detectors/drift.ts";
import { flood } from "./detectors/flood.ts";
import { budget, disk, memory, steps } from "./detectors/limits.ts";
import { monologue } from "./detectors/monologue.ts";
import { noProgress, spending } from "./detectors/no-progress.ts";
import { sameError } from "./detectors/same-error.ts";
import { silence } from "./detectors/silence.ts";
import type { Detector, DetectorName, Sighting } from "./finding.ts";
import { isWaiting, type Picture } from "./picture.ts";
import type { GuardianSettings } from "./settings.ts";

const DETECTORS: Readonly<Record<DetectorName, Detector>> = {
  silence,
  repeat,
  alternation,
  same_error: sameError,
  no_progress: noProgress,
  monologue,
  spending,
  drift,
  damage,
  flood,
  budget,
  steps,
  disk,
  memory,
};

/** What is wrong now, the surest first. A run that waits for a person or is paused gets no finding: nothing of it moves. */
export function detect(picture: Picture, settings: GuardianSettings): Sighting[] {
  if (settings.mode === "off" || isWaiting(picture) || picture.seen.paused === true) return [];
  const names = (Object.keys(DETECTORS) as DetectorName[]).filter((name) => !settings.off.includes(name));
  return names
    .flatMap((detector) => {
      const found = DETECTORS[detector](picture, settings);
      return found === undefined ? [] : [{ detector, ...found }];
    })
    .sort((one, other) => other.confidence - one.confidence);
}
