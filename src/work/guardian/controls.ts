/**
 * What the guardian may do to a run: a port that the engine implements. Every method names the agent it is meant for. The engine
 * compares that with the agent of now, under its own lock, and does nothing for another one: it answers false.
 */
import type { Target } from "./finding.ts";

export interface Question {
  /** Given back with the answer to `Guardian.answer`. */
  readonly matter: string;
  readonly text: string;
  readonly evidence: string;
}

export interface RunControls {
  /** Puts a text into the run, as a message of the guardian's that the agent gets at its next tool call. */
  message(target: Target, text: string): Promise<boolean>;
  /** Asks the person; resolves once the question is there, not when it is answered. */
  askPerson(target: Target, question: Question): Promise<boolean>;
  /** Stops the clock of the whole sandbox; nothing is lost. */
  pause(target: Target): Promise<boolean>;
  resume(target: Target): Promise<boolean>;
  /** Brings files and conversation back to the newest snapshot that is older than this ISO time, and lets the agent go on; false where there is none. */
  rollback(target: Target, before: string): Promise<boolean>;
  /** Starts a new agent on the last good snapshot, with the condensed conversation and this text. The engine then calls `Guardian.restarted`. */
  restart(target: Target, context: string): Promise<boolean>;
  /** Ends the run; its work stays in the snapshot that was taken before. */
  stop(target: Target, reason: string): Promise<boolean>;
  /** Resolves with the id of a snapshot of now; rejects if there can't be one: then nothing is ended. */
  snapshot(target: Target, reason: string): Promise<string>;
}
