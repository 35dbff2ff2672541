// Made from the contracts by scripts/sdk-types.ts.
import type { Automation, Firing } from "./automations.ts";

/** Input of: Add an automation. */
export interface AddAutomationInput {
  /** Absolute path of a folder in the project, or of the project. */
  project: string;
  /** A name: lower-case letters, digits and hyphens. */
  name: string;
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
      every?: number | string | undefined;
    } | {
      on: "check";
      /** Line that is run in a clone; it fires when the line begins to fail. */
      command: string;
      /** How often it runs; hourly if left out. */
      every?: number | string | undefined;
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
    reality?: string[] | undefined;
    /** alert-only: it tells. propose-and-wait: it tries, and a person promotes. act-and-notify: it promotes what is verified, and tells. act-and-log: it promotes, and the record says so. */
    authority?: "alert-only" | "propose-and-wait" | "act-and-notify" | "act-and-log" | undefined;
    /** Time for one attempt; 10 minutes if left out. */
    timeout?: number | string | undefined;
    /** What comes within this time is one firing; 2 seconds if left out, 0 for none. */
    batch?: number | string | undefined;
    /** What it may spend on models. */
    budget?: {
      /** Dollars that one firing may spend on models. */
      run?: number | undefined;
      /** Dollars of all its firings from noon to noon; those beyond wait for the next night. */
      night?: number | undefined;
    } | undefined;
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
    together?: boolean | undefined;
    /** It tries and verifies, and promotes nothing. */
    dryRun?: boolean | undefined;
  };
  /** PATH of the caller, for its lines. */
  path?: string | undefined;
}

/** Answer of: Add an automation. */
export interface AddAutomationOutput extends Automation {
  /** What calls of its webhook are signed with. */
  secret: string | null;
}

/** Input of: Automations, by project and name. */
export interface ListAutomationsInput {
  /** Only those of this project. */
  project?: string | undefined;
}

/** Answer of: Automations, by project and name. */
export interface ListAutomationsOutput {
  automations: Automation[];
}

/** Input of: One automation with its last firings. */
export interface InspectAutomationInput {
  /** Id or name of an automation. */
  automation: string;
  /** Where a name is looked for first. */
  project?: string | undefined;
}

/** Answer of: One automation with its last firings. */
export interface InspectAutomationOutput extends Automation {
  firings: Firing[];
}

/** Input of: What calls of its webhook are signed with. */
export interface AutomationSecretInput {
  /** Id or name of an automation. */
  automation: string;
  /** Where a name is looked for first. */
  project?: string | undefined;
  /** Make a new one; the one before is worth nothing then. */
  renew?: boolean | undefined;
}

/** Answer of: What calls of its webhook are signed with. */
export interface AutomationSecretOutput {
  secret: string;
}

/** Input of: Start it now, as a person. */
export interface RunAutomationInput {
  /** Id or name of an automation. */
  automation: string;
  /** Where a name is looked for first. */
  project?: string | undefined;
}

/** Input of: What its trigger would do now; nothing is done. */
export interface TestAutomationInput {
  /** Id or name of an automation. */
  automation: string;
  /** Where a name is looked for first. */
  project?: string | undefined;
}

/** Input of: It waits for nothing until it is resumed; what is at work goes on, and what has not begun waits. */
export interface PauseAutomationInput {
  /** Id or name of an automation. */
  automation: string;
  /** Where a name is looked for first. */
  project?: string | undefined;
  reason?: string | undefined;
}

/** Input of: It waits for its trigger again. */
export interface ResumeAutomationInput {
  /** Id or name of an automation. */
  automation: string;
  /** Where a name is looked for first. */
  project?: string | undefined;
}

/** Input of: Remove it: what is at work ends, and its work is kept. */
export interface RemoveAutomationInput {
  /** Id or name of an automation. */
  automation: string;
  /** Where a name is looked for first. */
  project?: string | undefined;
}

/** Input of: Firings, the newest first. */
export interface ListFiringsInput {
  /** Id or name of an automation. */
  automation?: string | undefined;
  /** Only those of this project. */
  project?: string | undefined;
  limit?: number | undefined;
}

/** Answer of: Firings, the newest first. */
export interface ListFiringsOutput {
  firings: Firing[];
}

/** Input of: One firing. */
export interface InspectFiringInput {
  /** Id of a firing. */
  firing: string;
}

/** Input of: What automations did since a time. */
export interface ReportFiringsInput {
  since: string;
  project?: string | undefined;
}
