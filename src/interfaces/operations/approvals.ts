/** Use cases of questions for a person: what agents ask, and promotions that wait. */
import type { Approvals } from "../../rules/approvals/approvals.ts";
import type { Promotions } from "../../work/promotion/promotions.ts";
import type { ParsedOf } from "../../base/schema/contracts.ts";
import { VivError } from "../../base/schema/errors.ts";
import { PromotionId } from "../../base/schema/ids.ts";
import type { Question } from "../../base/schema/question.ts";
import type { Handlers } from "./operations.ts";

type Own = "listApprovals" | "inspectApproval" | "answerApproval";

/** A machine that can't promote anything has no promotions. */
export function approvalHandlers(approvals: Approvals, promotions: Promotions | undefined): Pick<Handlers, Own> {
  const promotionsFor = (id: string): Promotions | undefined => (PromotionId.safeParse(id).success ? promotions : undefined);
  return {
    listApprovals: async ({ all }) => {
      const questions: Question[] = [...(await approvals.list(all)), ...((await promotions?.questions()) ?? [])];
      return { approvals: questions.toSorted((one, other) => (one.askedAt > other.askedAt ? -1 : 1)) };
    },
    inspectApproval: async ({ approval }) => (await promotionsFor(approval)?.question(approval)) ?? approvals.inspect(approval),
    answerApproval: async (input) => {
      const owner = promotionsFor(input.approval);
      return owner === undefined ? approvals.answer(input.approval, input.answer, input.approver) : answer(approvals, owner, input);
    },
  };
}

async function answer(
  approvals: Approvals,
  promotions: Promotions,
  { approval: id, answer: given, approver, env = {} }: ParsedOf<"answerApproval">,
): Promise<Question> {
  approvals.requireApprover(approver);
  const { state } = await promotions.question(id);
  if (state !== "waiting") throw new VivError("illegal_transition", `${id} is ${state} already.`, { remedy: "Look at `viv promotions`." });
  if (given === "always")
    throw new VivError("invalid_input", "`always` is not for promotions: an approval is for one promotion.", { remedy: "Answer it once." });
  if (given === "deny") {
    await promotions.discard(id, "A person denied it");
    return { ...(await promotions.question(id)), state: "denied", answeredBy: "approver", scope: null };
  }
  await promotions.continue(id, undefined, true, env);
  const now = await promotions.question(id);
  // The next stage may have a question of its own.
  return { ...now, state: now.state === "waiting" ? "waiting" : "used", answeredBy: "approver" };
}
