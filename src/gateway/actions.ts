/** Actions that hooks inside put to the policy, and the policy itself. */
import type { Actions } from "../actions/actions.ts";
import { shownPolicy } from "../actions/policy-of.ts";
import { ActionInput } from "../schema/action.ts";
import type { Call } from "./desk.ts";
import { parse, type Reply } from "./http.ts";

const [DECIDED, NOT_YET] = [200, 202];

export async function decideInside(actions: Actions, { row, body, signal }: Call): Promise<Reply> {
  const answer = await actions.decide(row, parse(ActionInput, body), signal);
  return { status: answer.verdict === "ask" ? NOT_YET : DECIDED, body: answer };
}

export async function policyInside(actions: Actions, { row }: Call): Promise<Reply> {
  return { status: 200, body: shownPolicy(await actions.policy(row)) };
}
