/** A promotion that waits, as a question for a person: the same form as every other. */
import { isWaiting } from "../../sandbox/ending/waiting-promotions.ts";
import type { Question } from "../../base/schema/question.ts";
import type { PromotionRow } from "../../base/store/rows.ts";

export function targetOfQuestion({ plan, stages }: PromotionRow): string {
  const files = plan?.files ?? 0;
  const stage = stages.find(({ state }) => state === "waiting");
  return `${files} ${files === 1 ? "file" : "files"}${stage === undefined ? "" : ` to ${stage.name}`}`;
}

export function asQuestion(row: PromotionRow): Question {
  const { id, sandbox, sandboxName, project, plan, reason, createdAt, endedAt } = row;
  const state = isWaiting(row) ? "waiting" : row.state === "discarded" ? "denied" : "used";
  return {
    id,
    state,
    sandbox,
    sandboxName,
    project,
    kind: "promotion",
    target: targetOfQuestion(row),
    hash: plan?.hash ?? "",
    rule: null,
    reason: reason ?? "It needs an approval.",
    always: null,
    risks: plan?.risks ?? [],
    askedAt: createdAt,
    deadline: null,
    answeredAt: state === "waiting" ? null : endedAt,
    answeredBy: null,
    scope: state === "used" ? "once" : null,
  };
}
