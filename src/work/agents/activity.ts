/** What an agent is busy with, by what it did last. */
import type { Run, RunEventBody } from "../../base/schema/run.ts";

type Activity = Pick<Run, "activity" | "activityUntil">;

export function activityAfter(before: Run["activity"], event: RunEventBody): Activity | undefined {
  const activity = next(event);
  if (activity === undefined) return undefined;
  const until = event.type === "waiting" ? event.until : null;
  return activity === before && until === null && event.type !== "waiting" ? undefined : { activity, activityUntil: until };
}

function next(event: RunEventBody): Run["activity"] | undefined {
  switch (event.type) {
    case "tool_call":
      return "tool";
    case "tool_result":
    case "thinking":
    case "resumed":
      return "model";
    case "turn":
      return event.state === "began" ? "model" : "idle";
    case "waiting":
      return event.for === "person" ? "person" : "rate_limit";
    default:
      return undefined;
  }
}
