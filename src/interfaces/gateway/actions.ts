/** Actions that hooks inside put to the policy, and the gateway's own requests as such actions. */
import type { Actions } from "../../rules/actions/actions.ts";
import type { ActionAnswer } from "../../base/schema/action.ts";
import { VivError } from "../../base/schema/errors.ts";
import type { SandboxRow } from "../../base/store/rows.ts";
import type { Answer, Call } from "./call.ts";

export async function decideInside(actions: Actions, { row, input, signal }: Call<"decideAction">): Answer<"decideAction"> {
  const answer = await actions.decide(row, input, signal);
  return answer.verdict === "ask" ? { waits: answer } : { body: answer };
}

interface Tool {
  readonly tool: string;
  readonly argument?: string;
}

/** Each thing that the gateway does for an agent counts as a tool of the agent, and the policy judges it like any other. */
export async function asTool<Reply>(
  actions: Actions,
  row: SandboxRow,
  tool: Tool,
  answer: () => Promise<Reply>,
): Promise<Reply | { readonly waits: ActionAnswer }> {
  const refusal = await actions.refusal(row, { kind: "tool", ...tool });
  if (refusal === undefined) return answer();
  if (refusal.verdict === "ask") return { waits: refusal };
  throw new VivError("denied", refusal.reason, { remedy: "GET /sandbox/self/policy says what this sandbox may do." });
}
