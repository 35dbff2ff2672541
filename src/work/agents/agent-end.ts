/** How the process of an agent ended, and what that means for its run. */
import type { CommandEnd } from "../../base/schema/command.ts";
import type { RunOutcome } from "../../base/schema/run.ts";
import type { RunRow } from "../../base/store/rows.ts";

export interface AgentEnd {
  readonly outcome: RunOutcome;
  readonly reason: string | null;
  readonly command: CommandEnd;
  /** Whether its program died in the midst of its work: another one may go on with it. */
  readonly died: boolean;
}

/** Why an agent is made to end. */
export interface AgentEnding {
  readonly outcome: RunOutcome;
  readonly reason: string;
}

interface Known {
  readonly ending: AgentEnding | undefined;
  /** What the agent said itself. */
  readonly over: RunRow["over"] | undefined;
  /** Its turn had ended, and no message waited. */
  readonly isIdle: boolean;
}

export function outcomeOf(end: CommandEnd, { ending, over, isIdle }: Known): Pick<AgentEnd, "outcome" | "reason"> {
  if (end.cause === "timeout") return { outcome: "timeout", reason: "It ran out of time; the work up to then is kept." };
  if (ending !== undefined) return ending;
  if (end.cause === "lost") return { outcome: "lost", reason: "Its sandbox ended before it did." };
  if (over != null) return { outcome: over.over, reason: over.reason };
  if (isIdle || end.exitCode === 0) return { outcome: "done", reason: null };
  return { outcome: "failed", reason: end.message ?? `It ended with ${end.exitCode}.` };
}
