// Made from the contracts by scripts/sdk-types.ts.
import type { CheckResult } from "./experiments.ts";

/** A trigger with what it starts and the authority it has. */
export interface Automation {
  /** Id of an automation. */
  id: string;
  /** A name: lower-case letters, digits and hyphens. */
  name: string;
  /** Path of its project. */
  project: string;
  /** config: of vivarium.json. person: added by `viv automation add`. */
  source: "config" | "person";
  /** What it waits for; manual for one that only a person starts. */
  kind: "files" | "schedule" | "webhook" | "commit" | "check" | "log" | "manual";
  /** A trigger with what it starts and the authority it has. */
  spec: {
    /** Left out, it runs only when it is asked to. */
    when?: {
      on: "files";
      /** Paths of the project, relative to it; `*` stands for any text, also with slashes, and a folder for all below it. */
      paths: string[];
    } | {
      on: "schedule";
      /** A line of cron: minute, hour, day, month, weekday; with six fields, seconds first. */
      cron: string;
      /** Time zone, such as Europe/Berlin; the machine's if left out. */
      timezone?: string | undefined;
    } | {
      on: "webhook";
    } | {
      on: "commit";
      /** Name of the branch. */
      branch: string;
      /** A remote of the project, or an address; the local branch if left out. */
      remote?: string | undefined;
      /** How often a remote is asked; every 10 minutes if left out. */
      every?: number | undefined;
    } | {
      on: "check";
      /** Line that is run in a clone; it fires when the line begins to fail. */
      command: string;
      /** How often it runs; hourly if left out. */
      every?: number | undefined;
    } | {
      on: "log";
      /** Absolute path of the file. */
      file: string;
      /** What a line has to be; `*` stands for any text, as in `*ERROR*`. */
      line: string;
    } | undefined;
    /** What an agent is asked to do. */
    task?: string | undefined;
    /** The agent; claude if left out. */
    agent?: string | undefined;
    /** Its model. */
    model?: string | undefined;
    /** Lines instead of a task: each is an attempt in a clone of its own. */
    run?: string[] | undefined;
    /** Lines that verify the change in a clone; the project's if left out. */
    checks?: string[] | undefined;
    /** Prepares a fresh clone before its checks; the project's if left out. */
    setup?: string | undefined;
    /** Lines run on the real machine before and after a promotion: it is undone when one fails that passed before. */
    reality: string[];
    /** alert-only: it tells. propose-and-wait: it tries, and a person promotes. act-and-notify: it promotes what is verified, and tells. act-and-log: it promotes, and the record says so. */
    authority: "alert-only" | "propose-and-wait" | "act-and-notify" | "act-and-log";
    /** Time for one attempt; 10 minutes if left out. */
    timeout?: number | undefined;
    /** What comes within this time is one firing; 2 seconds if left out, 0 for none. */
    batch?: number | undefined;
    /** What it may spend on models. */
    budget: {
      /** Dollars that one firing may spend on models. */
      run?: number | undefined;
      /** Dollars of all its firings from noon to noon; those beyond wait for the next night. */
      night?: number | undefined;
    };
    /** Hours in which it begins nothing; what comes then waits. */
    quiet?: {
      /** Such as 08:00. */
      from: string;
      /** Such as 18:00. */
      to: string;
      /** Time zone, such as Europe/Berlin; the machine's if left out. */
      timezone?: string | undefined;
    } | undefined;
    /** It may work while another automation works on the same project. */
    together: boolean;
    /** It tries and verifies, and promotes nothing. */
    dryRun: boolean;
  };
  /** muted: it stopped itself. broken: it can't wait for its trigger; reason says why. */
  state: "active" | "paused" | "muted" | "broken";
  /** Why it is paused, muted or broken, one sentence. */
  reason: string | null;
  /** What it may do now: its own, within the user's config. */
  authority: "alert-only" | "propose-and-wait" | "act-and-notify" | "act-and-log";
  /** ISO time of the next run of a schedule. */
  nextAt: string | null;
  /** Its newest firing. */
  last: {
    /** Id of a firing. */
    firing: string;
    /** seen, triaged, working, verified; then done (nothing to change), promoted, waiting (for a person), alerted, failed, muted or undone. */
    state: "seen" | "triaged" | "working" | "verified" | "done" | "promoted" | "waiting" | "alerted" | "failed" | "muted" | "undone";
    /** ISO time at which its trigger was seen. */
    at: string;
  } | null;
  createdAt: string;
}

/** What came of a trigger. */
export interface Firing {
  /** Id of a firing. */
  id: string;
  /** Id of an automation. */
  automation: string;
  /** Name of the automation. */
  name: string;
  project: string;
  /** What it waits for; manual for one that only a person starts. */
  kind: "files" | "schedule" | "webhook" | "commit" | "check" | "log" | "manual";
  /** seen, triaged, working, verified; then done (nothing to change), promoted, waiting (for a person), alerted, failed, muted or undone. */
  state: "seen" | "triaged" | "working" | "verified" | "done" | "promoted" | "waiting" | "alerted" | "failed" | "muted" | "undone";
  /** Why it is in this state, one sentence. */
  reason: string | null;
  /** What was seen, the first ones; texts of files, logs and callers are data. */
  seen: ({
    at: string;
    text: string;
  })[];
  /** Triggers that it stands for. */
  count: number;
  triage: {
    /** direct: it only looks, in reality. sandbox: tried, verified, promoted. propose: a person decides. */
    way: "direct" | "sandbox" | "propose" | "alert";
    reason: string;
  } | null;
  /** What it had when it was triaged. */
  authority: "alert-only" | "propose-and-wait" | "act-and-notify" | "act-and-log" | null;
  experiment: string | null;
  promotion: string | null;
  /** Paths that were promoted, or wait to be; the first ones. */
  files: string[];
  /** What a direct look printed; the last part. */
  output: string | null;
  /** Checks of reality before the promotion. */
  before: CheckResult[];
  /** The same after it. */
  after: CheckResult[];
  /** The promotion that took it back. */
  undo: string | null;
  /** Dollars spent on models. */
  cost: number;
  /** Its way. */
  steps: ({
    at: string;
    /** seen, triaged, working, verified; then done (nothing to change), promoted, waiting (for a person), alerted, failed, muted or undone. */
    state: "seen" | "triaged" | "working" | "verified" | "done" | "promoted" | "waiting" | "alerted" | "failed" | "muted" | "undone";
    reason: string | null;
  })[];
  seenAt: string;
  /** ISO time before which it does not begin. */
  notBefore: string | null;
  endedAt: string | null;
}

/** What a trigger would do now; nothing was done. */
export interface AutomationTest {
  automation: Automation;
  /** What is to be done, and why. */
  triage: {
    /** direct: it only looks, in reality. sandbox: tried, verified, promoted. propose: a person decides. */
    way: "direct" | "sandbox" | "propose" | "alert";
    reason: string;
  };
  /** Whether its trigger would fire now. */
  wouldFire: boolean;
  /** What its trigger sees now. */
  seen: string;
  /** Why a firing would wait now. */
  hindrance: string | null;
}

/** What automations did in a time. */
export interface MorningReport {
  since: string;
  until: string;
  /** Triggers that were seen. */
  triggers: number;
  /** How many firings are in each state. */
  states: ({
    /** seen, triaged, working, verified; then done (nothing to change), promoted, waiting (for a person), alerted, failed, muted or undone. */
    state: "seen" | "triaged" | "working" | "verified" | "done" | "promoted" | "waiting" | "alerted" | "failed" | "muted" | "undone";
    firings: number;
  })[];
  /** Dollars spent on models. */
  cost: number;
  /** The newest first. */
  firings: Firing[];
  /** Firings that are counted, and not listed. */
  left: number;
  /** Automations that are muted or broken. */
  stopped: Automation[];
}
