/** What a run is busy with, in words. */
import type { Run } from "../../../src/base/schema/run.ts";
import { clock } from "./words.ts";

const ACTIVITY: Readonly<Record<Run["activity"], string>> = {
  starting: "starting",
  model: "the model answers",
  tool: "a tool runs",
  rate_limit: "waits for a rate limit",
  person: "waits for you",
  idle: "has nothing to do",
  ended: "ended",
};

/** With the end of a wait that ends by itself. */
export function activityWords({ activity, activityUntil }: Pick<Run, "activity" | "activityUntil">): string {
  const endsAlone = activity === "rate_limit" || activity === "starting";
  return activityUntil === null || !endsAlone ? ACTIVITY[activity] : `${ACTIVITY[activity]}, until ${clock(activityUntil)}`;
}
