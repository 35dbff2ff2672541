// Made from the contracts by scripts/sdk-types.ts.
import type { CheckResult } from "./experiments.ts";

/** A change on its way into reality. */
export interface PromotionInfo {
  /** Id of a promotion. */
  id: string;
  kind: "promotion" | "undo";
  project: string;
  /** Id of the sandbox it comes from. */
  sandbox: string | null;
  sandboxName: string | null;
  experiment: string | null;
  /** Id of the promotion that an undo takes back. */
  undoes: string | null;
  message: string | null;
  /** waiting is for an approval; failed has changed nothing that stays, but for the files in kept; discarded was denied, taken back, or lost its sandbox while it waited. */
  state: "planning" | "waiting" | "applying" | "applied" | "failed" | "discarded" | "undone";
  /** Why it failed or waits, one sentence. */
  reason: string | null;
  plan: PromotionPlan | null;
  stages: StageResult[];
  branch: {
    name: string;
    commit: string;
    pushedTo: string | null;
    /** Its address. */
    pullRequest: string | null;
  } | null;
  /** Files that were edited while it was written: they keep the edit and what was written before it, although the rest was taken back. */
  kept: string[];
  /** Whether an interrupted write to the project is still to be brought to its end or back. */
  pending: boolean;
  createdAt: string;
  endedAt: string | null;
}

/** What a promotion would do. */
export interface PromotionPlan {
  /** Of everything that is written and deleted; the same hash is the same change. */
  hash: string;
  /** The first 10,000. */
  changes: ({
    /** Path relative to the project; odd bytes are escaped. */
    path: string;
    status: "added" | "changed" | "deleted";
    /** As git writes modes. */
    oldMode: string | null;
    newMode: string | null;
    /** Git's hash of the bytes that are written; null for a deletion. */
    hash: string | null;
  })[];
  /** How many there are. */
  files: number;
  /** Whether reality moved since the clone, so that the change was merged with it. */
  moved: boolean;
  /** How many paths moved. */
  movedPaths: number;
  conflicts: ({
    path: string;
    /** content, binary, mode, delete/edit, directory/file, late edit, ... */
    kind: string;
    /** One sentence. */
    message: string;
  })[];
  risks: Risk[];
  /** What the sandbox changed and is not promoted, the first 1,000. */
  leftOut: ({
    path: string;
    why: string;
  })[];
  /** What a person should know, one sentence each. */
  notes: string[];
}

/** How far a promotion came. */
export interface StageResult {
  name: string;
  /** waiting is for an approval; not-set-up has nothing that carries it out. */
  state: "pending" | "running" | "waiting" | "passed" | "failed" | "rolled-back" | "not-set-up";
  reason: string | null;
  /** Checks, and what ran before them, in order. */
  checks: CheckResult[];
  endedAt: string | null;
}

/** Something in a change that a person should look at before it is applied. */
export interface Risk {
  path: string;
  /** Why a path is risky. */
  kind: "runs-by-itself" | "git" | "link-out" | "special" | "setuid" | "secret" | "submodule" | "config" | "name" | "hidden-text" | "conflict";
  /** One sentence. */
  why: string;
}
