/** Actions that hooks inside put to the policy, and the policy itself. */
import type { Actions } from "../../rules/actions/actions.ts";
import { shownPolicy } from "../../rules/actions/policy-of.ts";
import { ActionInput } from "../../base/schema/action.ts";
import { VivError } from "../../base/schema/errors.ts";
import type { Call } from "./routes.ts";
import { parse, type Reply } from "./http.ts";

const [DECIDED, NOT_YET] = [200, 202];

export async function decideInside(actions: Actions, { row, body, signal }: Call): Promise<Reply> {
  const answer = await actions.decide(row, parse(ActionInput, body), signal);
  return { status: answer.verdict === "ask" ? NOT_YET : DECIDED, body: answer };
}

/** Each thing that the gateway does for an agent counts as a tool of the agent, and the policy judges it like any other. */
export async function asTool(actions: Actions, call: Call, tool: string, answer: (call: Call) => Promise<Reply>): Promise<Reply> {
  const argument = call.named["to"];
  const refusal = await actions.refusal(call.row, { kind: "tool", tool, ...(argument === undefined ? {} : { argument }) });
  if (refusal === undefined) return answer(call);
  if (refusal.verdict === "ask") return { status: NOT_YET, body: refusal };
  throw new VivError("denied", refusal.reason, { remedy: "GET /sandbox/self/policy says what this sandbox may do." });
}

export async function policyInside(actions: Actions, { row }: Call): Promise<Reply> {
  return { status: 200, body: shownPolicy(await actions.policy(row)) };
}
