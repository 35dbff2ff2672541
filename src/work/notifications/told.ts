/** Which events people are told of, and in which words. A run that is part of something larger is told of with that. */
import type { Approval } from "../../base/schema/approval.ts";
import type { VivEvent } from "../../base/schema/event.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import type { NotificationKind } from "../../base/schema/notification.ts";
import type { ExperimentRow, RunRow } from "../../base/store/rows.ts";
import type { Read } from "../../base/store/store.ts";
import { isWaiting } from "../../sandbox/ending/waiting-promotions.ts";
import { plainLine } from "./text.ts";

/** What a part of the server tells people of. */
export interface NewNotification {
  readonly kind: NotificationKind;
  /** Names the run. Any text: what does not belong into a line is taken out. */
  readonly title: string;
  /** One sentence. */
  readonly text: string;
  /** Path of the dashboard's page. */
  readonly link: string;
  readonly project: string | null;
  readonly run: string | null;
  /** The same key is told of once; each call is a new one if it is left out. */
  readonly key?: string;
  /** Id of what waits for a person: once that is settled, a notification that is still on its way is dropped. */
  readonly waitsFor?: string;
}

const NAME_CHARACTERS = 60;
const TARGET_CHARACTERS = 160;
/** An experiment that has just ended belongs to one of these, if it belongs to an automation. */
const LATEST_FIRINGS = 100;
const TOLD: ReadonlySet<string> = new Set(["approval.asked", "experiment.ended", "run.completed", "run.failed", "automation.notice"]);

export function isTold({ type }: VivEvent): boolean {
  return TOLD.has(type);
}

export async function notificationOf(read: Read, event: VivEvent): Promise<NewNotification | undefined> {
  const text = (name: string): string => (typeof event.data[name] === "string" ? event.data[name] : "");
  const ways: Readonly<Record<string, () => Promise<NewNotification | undefined>>> = {
    "approval.asked": () => ofQuestion(read, text("approval")),
    "experiment.ended": () => ofExperiment(read, text("experiment")),
    "automation.notice": async () => ofAutomation(text),
  };
  const told = await (ways[event.type] ?? (() => ofRun(read, text("run"))))();
  return told === undefined ? undefined : { ...told, key: `event ${event.sequence}` };
}

async function ofQuestion(read: Read, id: string): Promise<NewNotification | undefined> {
  const question = id.startsWith("prm") ? await ofPromotion(read, id) : await ofApproval(read, id);
  if (question === undefined) return undefined;
  const { sandbox, sandboxName, project, asked, reason } = question;
  const run = sandbox === null ? undefined : await read.runs.find({ sandbox });
  const name = run === undefined ? (sandboxName ?? baseName(project)) : nameOf(run);
  const text = reason === null ? `${asked}.` : `${asked}: ${reason}`;
  return { kind: "question", title: `Question: ${name}`, text, link: `/question/${id}`, project, run: run?.id ?? null, waitsFor: id };
}

type Asked = Pick<Approval, "sandbox" | "sandboxName" | "project"> & { readonly asked: string; readonly reason: string | null };

async function ofApproval(read: Read, id: string): Promise<Asked | undefined> {
  const row = await read.approvals.get(id);
  if (row === undefined) return undefined;
  // A long command leaves room for the reason.
  return { ...row, asked: `${QUESTIONS[row.kind] ?? "It asks about"} ${plainLine(row.target, TARGET_CHARACTERS)}` };
}

async function ofPromotion(read: Read, id: string): Promise<Asked | undefined> {
  const row = await read.promotions.get(id);
  return row === undefined ? undefined : { ...row, asked: "It asks whether its change may be promoted" };
}

const QUESTIONS: Readonly<Record<string, string>> = {
  command: "It asks to run",
  tool: "It asks to use",
  path: "It asks to touch",
  host: "It asks to reach",
  private: "It asks to reach",
  effect: "It asks to send",
  secret: "It asks for the secret",
  resources: "It asks for",
};

async function ofExperiment(read: Read, id: string): Promise<NewNotification | undefined> {
  const row = await read.experiments.get(id);
  if (row === undefined || row.state === "cancelled" || (await isOfAutomation(read, row))) return undefined;
  const [only] = row.attempts.length === 1 ? row.attempts : [];
  const run = only?.run == null ? undefined : await read.runs.get(only.run);
  const name =
    run === undefined
      ? `${row.attempts.length === 1 ? (only?.command ?? "") : `${row.attempts.length} attempts`} in ${baseName(row.project)}`
      : nameOf(run);
  const place = { link: run === undefined ? `/experiment/${id}` : `/run/${run.id}`, project: row.project, run: run?.id ?? null };
  if (row.state === "choosing")
    return { ...place, kind: "question", title: `Choose: ${name}`, text: row.reason ?? "A winner is to be chosen.", waitsFor: id };
  const failed = hasFailed(row);
  const text = (failed ? (only?.reason ?? row.reason) : (row.reason ?? only?.reason)) ?? (failed ? "It failed." : "It is done.");
  return { ...place, kind: failed ? "failed" : "done", title: `${failed ? "Failed" : "Done"}: ${name}`, text };
}

/** Its automation tells what came of it. */
async function isOfAutomation(read: Read, { id, project }: ExperimentRow): Promise<boolean> {
  const firings = await read.firings.list({ project }, { limit: LATEST_FIRINGS });
  return firings.some(({ experiment }) => experiment === id);
}

/** A change that it proposes is a question by itself, which is told as such. */
function ofAutomation(text: (name: string) => string): NewNotification | undefined {
  const kind = text("kind");
  if (kind === "question") return undefined;
  const about = { title: text("title"), text: text("text"), link: text("link"), project: text("project"), run: null };
  return { ...about, kind: kind === "done" ? "done" : "failed" };
}

/** An experiment ends well when something came of it: a winner, or an attempt that ended well where none was to be chosen. */
function hasFailed({ state, winner, pick, attempts }: ExperimentRow): boolean {
  if (state === "failed") return true;
  return winner === null && (pick !== "none" || attempts.every((attempt) => attempt.state !== "done"));
}

async function ofRun(read: Read, id: string): Promise<NewNotification | undefined> {
  const row = await read.runs.get(id);
  if (row === undefined || row.experiment !== null || row.askedBy != null || row.outcome === "cancelled") return undefined;
  const failed = row.outcome !== "done";
  return {
    kind: failed ? "failed" : "done",
    title: `${failed ? "Failed" : "Done"}: ${nameOf(row)}`,
    text: row.reason ?? (failed ? "It failed." : "It is done."),
    link: `/run/${id}`,
    project: row.project,
    run: id,
  };
}

/** A run is called by the first line of its task. */
function nameOf({ task }: RunRow): string {
  return plainLine(task.trim().split("\n")[0] ?? "", NAME_CHARACTERS);
}

function baseName(path: string): string {
  return path.split("/").findLast((part) => part !== "") ?? path;
}

/** Whether what it waits for was settled, so that a person need not be told any more. */
export async function isSettled(read: Read, waitsFor: string, now: number): Promise<boolean> {
  if (waitsFor.startsWith("exp")) return (await read.experiments.get(waitsFor))?.state !== "choosing";
  if (waitsFor.startsWith("prm")) {
    const promotion = await read.promotions.get(waitsFor);
    return promotion === undefined || !isWaiting(promotion);
  }
  const approval = await read.approvals.get(waitsFor);
  return approval?.state !== "waiting" || Date.parse(approval.deadline) <= now;
}

export function shortened({ kind, title, text, link, project, run }: NewNotification): Omit<NewNotification, "key" | "waitsFor"> {
  return {
    kind,
    title: plainLine(title, LIMITS.notificationTitleCharacters),
    text: plainLine(text, LIMITS.notificationTextCharacters),
    link,
    project,
    run,
  };
}
