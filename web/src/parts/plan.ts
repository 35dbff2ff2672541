/** What a promotion would do, and when to ask for it again. */
import type { UseQueryResult } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import type { InputOf } from "../../../src/base/schema/contracts.ts";
import type { PromotionPlan } from "../../../src/base/schema/promotion.ts";
import { queries, useAnswer } from "../server/queries.ts";

export type PlanSource = Pick<InputOf<"planPromotion">, "sandbox" | "experiment">;

/** Each plan freezes the sandbox for a moment: it is asked for again when something changed, and rarely without a sign of that. */
const SELDOM_MS = 30_000;

export function usePlan(source: PlanSource): UseQueryResult<PromotionPlan> {
  return useAnswer("planPromotion", source, { every: SELDOM_MS });
}

/** Plans anew when what the plan is made of has changed. `made` is that as text, once it is known. */
export function usePlanAgain(made: string | undefined): void {
  const last = useRef(made);
  useEffect(() => {
    if (made === undefined || made === last.current) return;
    const isFirst = last.current === undefined;
    last.current = made;
    if (!isFirst) void queries.invalidateQueries({ queryKey: ["planPromotion"] });
  }, [made]);
}
