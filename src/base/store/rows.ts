/** What the server keeps: the rows of the store. They outlive the server that wrote them, so every field of a later version is optional. */
import type { Automation, Firing } from "../schema/automation.ts";
import type { Service } from "../schema/config.ts";
import type { DashboardSession } from "../schema/dashboard.ts";
import type { Experiment, ExperimentInput } from "../schema/experiment.ts";
import type { Delivery, PushBrowser, PushKeys } from "../schema/notification.ts";
import type { ChosenNetwork, NetworkRules } from "../schema/network.ts";
import type { Autonomy } from "../schema/policy.ts";
import type { PreviewPlace } from "../schema/preview.ts";
import type { PromoteInput, Promotion } from "../schema/promotion.ts";
import type { CaptureReport, Limits, LiveFolder, Sandbox, Snapshot } from "../schema/sandbox.ts";
import type { GUARDIAN_DETECTORS, RATE_LIMIT_MODES } from "../schema/choices.ts";
import type { Companion, Run, RunMessage } from "../schema/run.ts";
import type { Job, ScheduleInput } from "../schema/job.ts";
import type { Secret } from "../schema/secret.ts";
import type { StartingPoint } from "../schema/start.ts";

/** What a driver keeps to find a launched sandbox again after a restart of the server. Only that driver reads it. */
export type Launched = object;

/** A sandbox as it is kept: what the API shows, and what the server needs to go on after a crash. */
export interface SandboxRow extends Omit<Sandbox, "autonomy" | "uses" | "notes" | "start" | "readOnly"> {
  /** Absent for a clone of a project. */
  readonly start?: StartingPoint | undefined;
  /** Rows of earlier versions have none. */
  readonly readOnly?: boolean | undefined;
  /** Whether the project can't be written to either. */
  readonly sealed?: boolean | undefined;
  /** Absent in rows of earlier versions: the default applies. */
  readonly autonomy?: Autonomy | undefined;
  /** What a person chose for it of what its agents may ask more of; rows of earlier versions don't say. */
  readonly givenLimits?: Partial<Pick<Limits, "cpus" | "memoryBytes">> | undefined;
  /** What its volume was made from. */
  readonly base: string;
  /** The base whose changes were merged into it last, if any: what it changed is told against that one. */
  readonly refreshedTo?: string | undefined;
  readonly range: number;
  readonly launched: Launched | null;
  /** The commands that its services are, by their names. They are chosen before they start; rows of earlier versions have none. */
  readonly serviceCommands?: Readonly<Record<string, string>> | undefined;
  readonly user: string;
  readonly env: Record<string, string>;
  readonly environmentLeftOut: string[];
  /** Names of variables that its config set; rows of earlier versions don't say. */
  readonly environmentSet?: readonly string[] | undefined;
  /** Rows of earlier versions have none. */
  readonly notes?: string[] | undefined;
  readonly untrusted: string[];
  readonly masked: string[];
  readonly exposed: string[];
  readonly sudo: boolean;
  /** What it reaches; nothing where this is missing, as in rows of earlier versions. */
  readonly network?: NetworkRules | undefined;
  /** What of that a person chose beside the configs; rows of earlier versions don't say. */
  readonly networkChosen?: ChosenNetwork | undefined;
  /** Services of the trusted config, started whenever processes start. */
  readonly services: Record<string, Service>;
  readonly home: string;
  readonly currentSnapshot: string | null;
  readonly idempotencyKey: string | null;
  /** Whether it goes with the caller that made it. */
  readonly held?: boolean | undefined;
  /** Set while a rollback is under way: a crash ends in the snapshot's state. */
  readonly restoring: string | null;
  /** Set once removal has begun: a crash ends in it being gone. */
  readonly removing: boolean;
}

/** A snapshot as it is kept. */
export interface SnapshotRow extends Snapshot {
  /** What its volume said of it when it was made; absent where it says nothing. */
  readonly seal?: string | undefined;
  /** As of its sandbox, when it was made. */
  readonly refreshedTo?: string | undefined;
}

/** An experiment as it is kept. */
export interface ExperimentRow extends Experiment {
  /** What was asked for; without the caller's environment once the origin has it. */
  readonly input: ExperimentInput;
  /** Frozen reality that all attempts start from: a snapshot, and the sandbox of the experiment that holds it. */
  readonly origin: { readonly sandbox: string; readonly snapshot: string } | null;
  /** Patterns of protected files; null stands for tests and their configuration. */
  readonly protect: readonly string[] | null;
  /** The run that its agents take over, and how many records its conversation had by then. */
  readonly takesOver?: { readonly run: string; readonly records: number } | undefined;
}

/** A promotion as it is kept. */
export interface PromotionRow extends Omit<Promotion, "kept"> {
  /** Absent where there are none. */
  readonly kept?: readonly string[];
  /** What was asked for, without the caller's environment. */
  readonly input: PromoteInput | null;
  /** Snapshot that holds the state being promoted. */
  readonly snapshot: string | null;
  /** What a person approved: stages, and accepted risks, each with the hash of the plan. */
  readonly approved: readonly string[];
  /** Hash of the plan that the checks were run on. */
  readonly verified: string | null;
  /** Set once the project is being written to, until that is known to have ended. */
  readonly writing: boolean;
  /** Whether the change lies in the project's folder, and an undo has something to take back. */
  readonly written: boolean;
}

/** A run as it is kept. */
export interface RunRow extends Run {
  /** The program, a path inside. */
  readonly program: string;
  readonly timeoutMs: number;
  /** The command that the agent is now, chosen before it starts. */
  readonly command: string | null;
  /** Bytes of its output that events were made of: of each stream up to its last whole line, and of both together. */
  readonly read: { readonly stdout: number; readonly stderr: number; readonly total: number };
  /** What its adapter knows; only that adapter reads it. */
  readonly session: { readonly [key: string]: unknown };
  /** Lines for its input that are not known to have been written. */
  readonly outbox: readonly string[];
  /** What follows the agent that runs, which is about to be replaced, or that died. */
  readonly again?: RunAgain | null | undefined;
  /** Whether the agent of now has ended its turn, and has been given nothing since. */
  readonly idle?: boolean | undefined;
  /** What the agent of now said of its end, before it ended. */
  readonly over?: { readonly over: "done" | "failed" | "cancelled"; readonly reason: string | null } | null | undefined;
  /** What the agent of now was told before its task. */
  readonly context?: string | null | undefined;
  /** Of the run that it took over: records that its agent gets in short, and in how many tokens. */
  readonly handed?: { readonly records: number; readonly tokens: number } | undefined;
  /** The oldest first. */
  readonly snapshots?: readonly { readonly id: string; readonly at: string; readonly reason: string }[] | undefined;
  /** Whether one is taken before each turn. */
  readonly snapshotTurns?: boolean | undefined;
  readonly rateLimit?: (typeof RATE_LIMIT_MODES)[number] | undefined;
  readonly guardianOff?: readonly (typeof GUARDIAN_DETECTORS)[number][] | undefined;
  /** Where the guardian stands; only the guardian reads it. */
  readonly escalation?: object | undefined;
  /** Questions of the guardian's that no person has answered, by what they are about. */
  readonly questions?: Readonly<Record<string, string>> | undefined;
  /** Output that could not be understood, in bytes. */
  readonly rawBytes: number;
  /** Agents that it may ask, with the program of each. */
  readonly with?: readonly (Companion & { readonly program: string })[] | undefined;
  /** Of a review: what was asked about which change, as one hash, and the sandbox that was made for it. */
  readonly review?: { readonly key: string; readonly sandbox: string } | undefined;
}

/** The next agent of a run: in a conversation that goes on, or in a new one with this to know. */
export interface RunAgain {
  readonly conversation: string | null;
  readonly context: string | null;
  /** The snapshot that the sandbox is brought back to before; absent if it goes on as it is. */
  readonly snapshot?: string | undefined;
  /** ISO time before which it does not begin. */
  readonly at?: string | undefined;
  /** Whether it counts as a restart, of which there are so many an hour. */
  readonly isRestart?: boolean | undefined;
}

/** A message to an agent, in the order in which messages came. */
export interface RunMessageRow extends RunMessage {
  readonly sequence: number;
}

/** A browser's session as it is kept: hashes alone, so that what the file holds opens nothing. */
export interface SessionRow extends DashboardSession {
  /** SHA-256 of what the link carries; once it was used, of the cookie. */
  readonly secretHash: string;
  /** SHA-256 of what the browser sends beside the cookie; null before the link was used. */
  readonly keyHash: string | null;
  /** Port of 127.0.0.1 that the browser knows. */
  readonly port: number;
}

/** A browser that was let in to a preview. */
export interface PreviewRow extends PreviewPlace {
  readonly id: string;
  /** Whether it is in a frame of the dashboard. */
  readonly frame: boolean;
  /** The session of the dashboard that it ends with; null for one that came by a link of the command line. */
  readonly session: string | null;
  /** SHA-256 of the cookie. */
  readonly secretHash: string;
  readonly createdAt: string;
  readonly expiresAt: string;
}

/** A notification on its way by one channel, as it is kept. */
export interface NotificationRow extends Delivery {
  /** Of the notification and the channel: the same one is not kept twice. */
  readonly id: string;
  readonly createdAt: string;
  /** Id of what waits for a person; once that is settled, it is not sent any more. */
  readonly waitsFor?: string | undefined;
  /** When it was sent, or given up. */
  readonly endedAt: string | null;
}

/** A browser that gets notifications, as it is kept. */
export interface PushBrowserRow extends PushBrowser {
  /** Address that its push service gave it: who knows it and the keys can send to it. */
  readonly endpoint: string;
  readonly keys: PushKeys;
}

/** How far a part of the server has read the log of events. */
export interface BookmarkRow {
  /** The part's name. */
  readonly id: string;
  /** Number of the last event that it has dealt with. */
  readonly event: number;
}

/** A job as it is kept. Its code and its output are apart, so that lists are read without them. */
export interface JobRow extends Job {
  /** Order in which jobs came. */
  readonly sequence: number;
  /** What was asked for, but the code. */
  readonly input: Omit<ScheduleInput, "code">;
  /** The command that the code is, chosen before it starts. */
  readonly command: string | null;
  readonly idempotencyKey: string | null;
  /** Hash of the request, for an idempotency key. */
  readonly fingerprint: string;
  /** Bytes of its code and its output. */
  readonly textBytes: number;
}

export interface JobTextRow {
  readonly id: string;
  readonly code: string;
  /** Absent before the end. Output that is no UTF-8 is kept as base64. */
  readonly output?: {
    readonly encoding: "utf8" | "base64";
    readonly stdout: string;
    readonly stderr: string;
    readonly dropped: { readonly stdout: number; readonly stderr: number };
  };
}

/** An automation as it is kept. */
export interface AutomationRow extends Omit<Automation, "authority" | "nextAt" | "last"> {
  /** PATH of its lines; the server's own if absent. */
  readonly path?: string | undefined;
  /** What calls of its webhook are signed with, sealed. */
  readonly sealed?: string | undefined;
  /** What its trigger saw last; only that kind of trigger reads it. */
  readonly cursor: { readonly [key: string]: string | number | boolean | null };
  /** Firings one after the other that its own promotions caused. */
  readonly selfCaused: number;
}

/** A firing as it is kept. */
export interface FiringRow extends Firing {
  /** Order in which firings came. */
  readonly sequence: number;
  /** Whether the checks of reality are worse after its promotion: it is to be undone. */
  readonly worse?: boolean | undefined;
  /** Automations whose promotions led to this one, the first one first. */
  readonly causes?: readonly string[] | undefined;
  /** Whether a person started it: then a pause, quiet hours and loops do not hold it up. */
  readonly asked?: boolean | undefined;
  /** Dollars that its agent may spend, of what was left of the night's; absent where nothing bounds it. */
  readonly budget?: number | undefined;
}

/** One thing that was seen: the same is not taken twice. */
export interface SightingRow {
  /** Id of the automation and what tells this sighting from others. */
  readonly id: string;
  readonly automation: string;
  readonly firing: string;
  readonly at: string;
}

/** A secret as it is kept. */
export interface SecretRow extends Secret {
  /** Its value, encrypted. */
  readonly sealed: string;
}

export interface ProjectRow {
  readonly id: string;
  readonly path: string;
  /** Hash of the trusted config content. */
  readonly trusted: string | null;
}

/** A folder of reality that a base holds. */
export interface CapturedRoot {
  /** Absolute path in reality and inside. */
  readonly path: string;
  /** Its number: roots/<n> of a volume. */
  readonly slot: number;
  /** Its content is not reality's folder of that path, and never becomes stale. */
  readonly taken?: true;
}

/** A folder of the project that a base shares with reality instead of holding it. */
export interface LiveRoot extends LiveFolder {
  /** Its number: live/<n> of a volume. */
  readonly slot: number;
}

/** Ids that are larger than those every sandbox has. */
export interface LargeIds {
  readonly uids: readonly number[];
  readonly gids: readonly number[];
}

/** A frozen view of a project. */
export interface Base {
  readonly id: string;
  /** Id of the project. */
  readonly project: string;
  readonly takenAt: string;
  readonly roots: readonly CapturedRoot[];
  readonly live: readonly LiveRoot[];
  /** Files too large to capture, shown read-only: absolute paths. */
  readonly readOnly: readonly string[];
  /** What owns files in it; absent in bases that were taken before this was looked for. */
  readonly owners?: LargeIds;
  readonly report: CaptureReport;
  /** It was frozen after its sandbox had a row: a failure of the machine may have come before. */
  readonly later?: true;
}
