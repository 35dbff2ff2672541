/** Plans, stages and promotions, for people. */
import type { CheckResult } from "../../base/schema/check.ts";
import type { PlannedChange, Promotion, PromotionPlan, Risk, StageResult } from "../../base/schema/promotion.ts";
import { printOutput } from "./output-lines.ts";
import { shortId } from "./references.ts";
import type { Colour, Screen } from "./screen.ts";
import { clean, cleanPath, plural } from "./text.ts";

const LETTERS = { added: "A", changed: "M", deleted: "D" } as const;
const COLOURS = { added: "green", changed: "yellow", deleted: "red" } as const;
/** Files that are named when a promotion is over; its plan has them all. */
const SHOWN_FILES = 20;

/** "100644", or "100644 -> 100755" where it moves. */
function modeText({ oldMode, newMode }: PlannedChange): string {
  if (oldMode === null || newMode === null || oldMode === newMode) return newMode ?? oldMode ?? "";
  return `${oldMode} -> ${newMode}`;
}

function printChanges(screen: Screen, plan: PromotionPlan, most = Number.POSITIVE_INFINITY): void {
  const shown = plan.changes.slice(0, most);
  const widest = Math.max(0, ...shown.map((change) => modeText(change).length));
  for (const change of shown) {
    const letter = screen.paint(COLOURS[change.status], LETTERS[change.status]);
    screen.print(`${letter}  ${screen.paint("dim", modeText(change).padEnd(widest))}  ${cleanPath(change.path)}`);
  }
  if (plan.files > shown.length) screen.print(`   and ${plan.files - shown.length} more`);
}

function printConflicts(screen: Screen, plan: PromotionPlan): void {
  for (const { path, kind, message } of plan.conflicts) {
    const more = message.includes(kind) ? "" : ` (${clean(kind)})`;
    screen.print(`${screen.paint("red", "conflict")}  ${cleanPath(path)}: ${clean(message)}${more}`);
  }
}

function printRisks(screen: Screen, plan: PromotionPlan): void {
  for (const risk of plan.risks) screen.print(screen.paint("yellow", riskText(risk)));
}

export function riskText({ path, kind, why }: Risk): string {
  return `risky  ${cleanPath(path)}: ${clean(why)} (${clean(kind)})`;
}

export function printPlan(screen: Screen, plan: PromotionPlan): void {
  if (plan.files === 0) screen.print("There is nothing to promote.");
  printChanges(screen, plan);
  printConflicts(screen, plan);
  printRisks(screen, plan);
  for (const { path, why } of plan.leftOut) screen.print(screen.paint("dim", `left out  ${cleanPath(path)}: ${clean(why)}`));
  for (const note of plan.notes) screen.print(`note: ${clean(note)}`);
  if (plan.moved)
    screen.print(`note: the project moved since the clone (${plural(plan.movedPaths, "path")}); the change was merged with that.`);
  screen.print(`${plural(plan.files, "file")}, plan ${plan.hash}`);
}

export const STAGE_MARKS: Readonly<Record<StageResult["state"], readonly [mark: string, colour: Colour]>> = {
  pending: ["·", "dim"],
  running: ["·", "cyan"],
  waiting: ["?", "yellow"],
  passed: ["✓", "green"],
  failed: ["✗", "red"],
  "rolled-back": ["✗", "red"],
  "not-set-up": ["-", "dim"],
};

/** "dev passed: 2 checks". */
export function stageText(stage: StageResult): string {
  const state = stage.state.replaceAll("-", " ");
  const checks =
    stage.checks.length === 0 ? "" : ` (${stage.checks.map(({ command, passed }) => `${command}${passed ? "" : ": failed"}`).join("; ")})`;
  return clean(`${stage.name} ${state}${stage.reason === null ? "" : `: ${stage.reason}`}${checks}`);
}

/** The last stage it passed. */
export function stageReached({ stages }: Promotion): string {
  return stages.findLast(({ state }) => state === "passed")?.name ?? "-";
}

function printFailedChecks(screen: Screen, stages: readonly StageResult[]): void {
  const failed: CheckResult[] = stages.flatMap(({ checks }) => checks.filter(({ passed }) => !passed));
  for (const check of failed) {
    screen.print(`${clean(check.command)} ended with ${check.exitCode}${check.cause === null ? "" : ` (${clean(check.cause)})`}:`);
    printOutput(screen, check.output, "  ");
  }
}

function printBranch(screen: Screen, { branch }: Promotion): void {
  if (branch === null) return;
  const pushed = branch.pushedTo === null ? "" : `, pushed to ${clean(branch.pushedTo)}`;
  screen.print(`Branch ${screen.paint("bold", clean(branch.name))} at ${branch.commit.slice(0, 12)}${pushed}.`);
  if (branch.pullRequest !== null) screen.print(`Pull request: ${clean(branch.pullRequest)}`);
}

/** How a promotion or an undo ended, and what can be done now. */
export function printSettled(screen: Screen, promotion: Promotion): void {
  const { plan, state } = promotion;
  const id = shortId(promotion.id);
  if (state === "applied") return printApplied(screen, promotion);
  if (state === "waiting") {
    if (plan !== null) printRisks(screen, plan);
    screen.print(screen.paint("yellow", clean(`${id} waits: ${promotion.reason ?? "it needs an approval."}`)));
    return screen.say(`\nLook at all of it with \`viv approvals ${id}\`, then: viv approve ${id}, or viv deny ${id}`);
  }
  if (state === "discarded") return screen.print(clean(`${id} does not go on: ${promotion.reason ?? "it was discarded."}`));
  if (state === "undone") return screen.print(`${id} was undone.`);
  if (plan !== null) printConflicts(screen, plan);
  printFailedChecks(screen, promotion.stages);
  const what = promotion.kind === "undo" ? "The undo failed" : "The promotion failed";
  screen.print(screen.paint("red", clean(`${what}: ${promotion.reason ?? "no reason is known."}`)));
  if (promotion.stages.some((stage) => stage.state === "rolled-back")) screen.say("The files it had written are restored.");
  if (promotion.kind === "promotion" && (plan?.conflicts.length ?? 0) > 0 && promotion.sandboxName !== null)
    screen.say(
      `\nBring today's project into the sandbox with \`viv refresh ${promotion.sandboxName}\`, settle it there, and promote again.`,
    );
}

function printApplied(screen: Screen, promotion: Promotion): void {
  const { plan } = promotion;
  if (promotion.kind === "undo") return printUndone(screen, promotion);
  if (plan !== null) printChanges(screen, plan, SHOWN_FILES);
  printBranch(screen, promotion);
  const files = plural(plan?.files ?? 0, "file");
  const where = promotion.branch === null ? `${files} promoted into ${clean(promotion.project)}` : `${files} on a branch`;
  screen.print(screen.paint("green", `${where}.`));
  for (const note of plan?.notes ?? []) screen.print(`note: ${clean(note)}`);
  const waiting = promotion.stages.find(({ state }) => state === "waiting");
  if (waiting !== undefined) {
    screen.print(screen.paint("yellow", clean(`${waiting.name} waits: ${waiting.reason ?? "it needs an approval."}`)));
    screen.say(`Go on with \`viv approve ${shortId(promotion.id)}\`, or end it with \`viv deny ${shortId(promotion.id)}\`.`);
  }
  if (promotion.branch === null) screen.say(`Undo with \`viv undo ${shortId(promotion.id)}\`.`);
}

const BACK = { added: "is back", changed: "is as it was", deleted: "is gone again" } as const;

function printUndone(screen: Screen, { plan, undoes, project }: Promotion): void {
  const shown = plan?.changes.slice(0, SHOWN_FILES) ?? [];
  for (const { path, status } of shown) screen.print(`${screen.paint(COLOURS[status], cleanPath(path))} ${BACK[status]}`);
  const more = (plan?.files ?? 0) - shown.length;
  if (more > 0) screen.print(`and ${plural(more, "more", "more")}`);
  screen.print(
    screen.paint(
      "green",
      `${undoes === null ? "It" : shortId(undoes)} is undone: ${plural(plan?.files ?? 0, "file")} in ${clean(project)}.`,
    ),
  );
}
