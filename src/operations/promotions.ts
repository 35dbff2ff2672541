/** Use cases of promotions. */
import { VivError } from "../schema/errors.ts";
import type { Handlers } from "./operations.ts";

type Own = "planPromotion" | "promote" | "listPromotions" | "inspectPromotion" | "continuePromotion" | "undoPromotion";

export function promotionHandlers(): Pick<Handlers, Own> {
  const later = async (): Promise<never> => {
    throw new VivError("unsupported", "Nothing can be promoted yet.");
  };
  return {
    planPromotion: later,
    promote: later,
    listPromotions: later,
    inspectPromotion: later,
    continuePromotion: later,
    undoPromotion: later,
  };
}
