/** promote and undo: what is written into reality is decided by the person, through their client or on a terminal. */
import type { RequestStateCodec } from "@modelcontextprotocol/server";
import type { ToolInput } from "../../base/schema/mcp.ts";
import type { Promotion } from "../../base/schema/promotion.ts";
import { answerOf, ask, byHand, settle } from "./asking.ts";
import type { Asked, Call } from "./call.ts";
import type { Answer } from "./execute-task.ts";
import { clean, cleanLine, result } from "./results.ts";
import { openSession } from "./sessions.ts";

const SHOWN_FILES = 20;

export async function promote(call: Call, codec: RequestStateCodec<Asked>, { session_id, message }: ToolInput<"promote">): Promise<Answer> {
  const { client } = call;
  const back = answerOf(call);
  if (back !== undefined) {
    await settle(call, back.asked, back.answer);
    return told(call, codec, await client.call("inspectPromotion", { promotion: back.asked.question }));
  }
  const session = await openSession(call, session_id);
  const source =
    session.kind === "experiment"
      ? { experiment: session.experiment.id }
      : { sandbox: session.kind === "run" ? (session.run.sandbox ?? session_id) : session.sandbox };
  const title = message ?? (session.kind === "run" ? session.run.task.slice(0, 10_000) : undefined);
  call.tell("Comparing the change with the project as it is now");
  const promotion = await client.call("promote", {
    ...source,
    ask: true,
    ...(title === undefined ? {} : { message: title }),
    env: { ...call.parts.env },
  });
  return told(call, codec, promotion);
}

/** A promotion that waits is asked about, also one whose next stage has a question of its own. */
async function told(call: Call, codec: RequestStateCodec<Asked>, promotion: Promotion): Promise<Answer> {
  const { id, state, reason, plan } = promotion;
  const isNew = answerOf(call)?.answer !== "none";
  if (state === "waiting" && call.approver !== undefined && isNew)
    return ask(call, codec, planText(promotion), { question: id, hash: plan?.hash ?? "", session: id });
  return result({
    promotion: id,
    status: state,
    ...(reason === null ? {} : { reason: clean(reason) }),
    files: plan?.files ?? 0,
    ...(plan === null || plan.conflicts.length === 0
      ? {}
      : { conflicts: plan.conflicts.map(({ path, message }) => `${clean(path)}: ${clean(message)}`) }),
    next: nextOf(promotion),
  });
}

function nextOf({ id, state }: Promotion): string {
  if (state === "waiting") return `The person has not answered yet. ${byHand(id)} Then call list to see whether it was applied.`;
  if (state === "applied") return `It is in the project. Call undo with promotion ${id} to take it back.`;
  if (state === "discarded") return "The person said no. Ask them what they would like instead.";
  return "Nothing was written. Call diff to look at the change.";
}

/** What the person sees before they say yes: where, what, and what is risky, in the server's words. */
function planText({ project, plan }: Promotion): string {
  const changes = plan?.changes ?? [];
  const lines = changes.slice(0, SHOWN_FILES).map(({ path, status }) => `  ${status} ${cleanLine(path)}`);
  const more = (plan?.files ?? 0) - lines.length;
  const risks = (plan?.risks ?? []).slice(0, SHOWN_FILES).map(({ path, why }) => `  ${cleanLine(path)}: ${why}`);
  return [
    `Write ${plan?.files ?? 0} files into ${project}?`,
    ...lines,
    ...(more > 0 ? [`  and ${more} more`] : []),
    ...(risks.length > 0 ? ["Look at these first:", ...risks] : []),
    "It can be undone.",
  ].join("\n");
}

export async function undo(call: Call, codec: RequestStateCodec<Asked>, { promotion: id }: ToolInput<"undo">): Promise<Answer> {
  const { client } = call;
  const byPerson = `Tell the person: to take it back, type \`viv undo ${id}\` in a terminal.`;
  const promotion = await client.call("inspectPromotion", { promotion: id });
  const back = answerOf(call);
  if (back === undefined) {
    if (call.approver === undefined) return result({ promotion: id, status: promotion.state, next: byPerson });
    const files = promotion.plan?.files ?? 0;
    return ask(call, codec, `Take back ${files} files in ${promotion.project}?`, {
      question: id,
      hash: promotion.plan?.hash ?? "",
      session: id,
    });
  }
  if (back.asked.question !== id || back.answer !== "yes" || call.approver === undefined)
    return result({ promotion: id, status: promotion.state, next: `Nothing was taken back. ${byPerson}` });
  const undone = await client.call("undoPromotion", { promotion: id });
  const { state, reason } = undone;
  return result({
    promotion: id,
    status: state === "applied" ? "undone" : state,
    ...(reason === null ? {} : { reason: clean(reason) }),
    next: "Call list to see where things stand.",
  });
}
