// Made from the contracts by scripts/sdk-types.ts.
import type { AuditRecord } from "./audit.ts";
import type { Json } from "./notebooks.ts";

/** Input of: Who decided what, the oldest first. */
export interface ListAuditInput {
  /** Id or name of a sandbox. */
  sandbox?: string | undefined;
  /** Sequence number. */
  after?: number | undefined;
  /** Only those of this time and later. */
  since?: string | undefined;
  /** Only records of this action, such as network.request; network.* are all actions that begin with `network.`. */
  action?: string | undefined;
  /** The newest of them instead of the oldest; in order all the same. */
  newest?: boolean | undefined;
  /** At most. */
  limit?: number | undefined;
}

/** Answer of: Who decided what, the oldest first. */
export interface ListAuditOutput {
  records: AuditRecord[];
}

/** Input of: Whether the chain of records is whole. */
export interface VerifyAuditInput {
  /** A record as it was noted elsewhere: its sequence number, a colon, its hash. */
  noted?: string | undefined;
}

/** Input of: Report a decision of an agent; never blocks it. */
export interface ReportDecisionInput {
  /** Id or name of a sandbox. */
  sandbox: string;
  decision: {
    /** What it used. */
    tool: string;
    /** With what. */
    args?: Json | undefined;
    /** When, by its own clock; the record has the server's. */
    timestamp?: string | undefined;
  };
}

/** Input of: Decisions about a sandbox. */
export interface ListDecisionsInput {
  /** Id or name of a sandbox. */
  sandbox: string;
  after?: number | undefined;
  limit?: number | undefined;
}

/** Answer of: Decisions about a sandbox. */
export interface ListDecisionsOutput {
  records: AuditRecord[];
}
