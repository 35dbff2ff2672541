/** Whether an agent's program died in the midst of its work, by how it ended: see docs/GUARDIAN.md. */
import type { CommandEnd } from "../../base/schema/command.ts";
import type { Run } from "../../base/schema/run.ts";

/** What an agent that has begun its work is busy with. */
const WORKING: ReadonlySet<Run["activity"]> = new Set(["model", "tool", "rate_limit", "person"]);
/** Exit codes by which a shell tells of a signal. */
const SIGNALLED = 128;
const MOST_SIGNALLED = SIGNALLED + 64;
const NO_DEATHS: ReadonlySet<CommandEnd["cause"]> = new Set(["timeout", "lost", "cancelled"]);

/**
 * For one that was not made to end, had not said that it is over, and whose turn had not ended. One that never began did not die: what
 * keeps a program from starting does so again. The exit code of a plain command is its verdict, unless a signal ended it.
 */
export function hasDied({ cause, exitCode, signal }: CommandEnd, activity: Run["activity"], isPlainCommand: boolean): boolean {
  if (exitCode === 0 || NO_DEATHS.has(cause)) return false;
  if (signal !== null || cause === "out-of-memory" || (exitCode > SIGNALLED && exitCode <= MOST_SIGNALLED)) return true;
  return !isPlainCommand && WORKING.has(activity);
}
