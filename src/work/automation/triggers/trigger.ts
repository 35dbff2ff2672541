/**
 * What an automation waits for. A trigger starts from the cursor that it left last, so that what happened while no server was there
 * is seen once. It tells what it saw together with its next cursor, and both are kept in one change: what was told is never told
 * again, and what was not told is seen again.
 */
import type { AutomationRow } from "../../../base/store/rows.ts";
import type { Sighting } from "../firing-record.ts";

export type Cursor = AutomationRow["cursor"];

/** Resolves once it is kept. */
export type Saw = (sightings: readonly Sighting[], cursor?: Cursor) => Promise<unknown>;

/** Says that it can't wait for now, such as a remote that does not answer; null when it can again. */
export type Trouble = (reason: string | null) => void;

export interface TriggerSource {
  start(): Promise<void>;
  stop(): Promise<void>;
  /** What it sees now, without telling. */
  look(): Promise<{ readonly wouldFire: boolean; readonly seen: string }>;
  /** When it fires next, where that is known. */
  nextAt?(): Date | null;
}
