// Made from the contracts by scripts/sdk-types.ts.
import type { Json } from "./notebooks.ts";

/** Something that was decided. */
export interface AuditRecord {
  /** Who acted, by the channel it came through, never by what it claims. */
  actor: {
    kind: "person" | "agent" | "policy" | "guardian" | "server";
    /** Id or name; of an agent, its sandbox. */
    name: string;
  };
  /** What was done, such as promotion.apply or bash. */
  action: string;
  /** What it was done to: a path, a command, a host, a hash. */
  target: string;
  /** Details, without what looks secret. */
  arguments: Json;
  /** AUTONOMOUS was done without asking, whitelisted by a rule; APPROVED by a person; RECORDED is what a person did, or what needs no decision. */
  label: "AUTONOMOUS" | "AUTONOMOUS (whitelisted)" | "APPROVED" | "DENIED" | "RECORDED";
  /** The rule that decided. */
  rule: string | null;
  reason: string | null;
  /** Id of the sandbox. */
  sandbox: string | null;
  /** Id of the snapshot it was done to. */
  snapshot: string | null;
  /** Place in the chain, from 1. */
  sequence: number;
  /** ISO time, as the clock said. */
  at: string;
  /** Whether the clock had been set back since the record before. */
  clockBack: boolean;
  /** Hash of the record before. */
  previous: string;
  /** Of this record and the hash before it. */
  hash: string;
}

/** Whether the chain is whole. */
export interface AuditReport {
  whole: boolean;
  records: number;
  /** Hash of the newest record: note it elsewhere, and any later change to an earlier record is found. */
  newest: string;
  /** What is wrong, with the first bad place. */
  problem: string | null;
  firstBad: number | null;
}
