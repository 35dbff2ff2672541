/** Use cases of promotions. */
import type { Approvals } from "../../rules/approvals/approvals.ts";
import type { Promotions } from "../../work/promotion/promotions.ts";
import type { Handlers } from "./operations.ts";

type Own = "planPromotion" | "promote" | "listPromotions" | "inspectPromotion" | "continuePromotion" | "discardPromotion" | "undoPromotion";

export function promotionHandlers(promotions: () => Promotions, approvals: Approvals): Pick<Handlers, Own> {
  return {
    planPromotion: (input) => promotions().plan(input),
    promote: (input) => promotions().promote(input),
    listPromotions: async ({ project, all }) => ({ promotions: await promotions().list(project, all) }),
    inspectPromotion: ({ promotion }) => promotions().inspect(promotion),
    continuePromotion: async ({ promotion, to, approve, approver = "", env = {} }) => {
      if (approve) approvals.requireApprover(approver);
      return promotions().continue(promotion, to, approve, env);
    },
    discardPromotion: ({ promotion }) => promotions().discard(promotion, "It was taken back"),
    undoPromotion: ({ promotion, project }) => promotions().undo(promotion, project),
  };
}
