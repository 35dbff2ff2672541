/** run: a command that a chat's model wants to run. The policy of the sandbox judges it first, as it judges what an agent does. */
import type { RequestStateCodec } from "@modelcontextprotocol/server";
import { VivError } from "../../base/schema/errors.ts";
import { answerOf, ask, mayAsk, sentenceOf, settle, waitsFor } from "./asking.ts";
import type { Asked, Call } from "./call.ts";
import type { Answer } from "./execute-task.ts";
import { clean, result } from "./results.ts";

/** Undefined where the command may run now; else what the caller is told, or the question for its person. */
export async function questionBefore(
  call: Call,
  codec: RequestStateCodec<Asked>,
  sandbox: string,
  command: string,
): Promise<Answer | undefined> {
  const { client } = call;
  const back = answerOf(call);
  if (back !== undefined) await settle(call, back.asked, back.answer);
  const { verdict, rule, reason, approval } = await client.call("decideAction", { sandbox, action: { kind: "command", command } });
  if (verdict === "allow") return undefined;
  if (approval === null)
    throw new VivError("denied", `The policy does not allow this command. ${clean(reason)} The rule: ${clean(rule)}.`, {
      remedy: "Do it another way. The person can change the rules in vivarium.json, or the sandbox's level with `viv policy set`.",
    });
  const question = await client.call("inspectApproval", { approval: approval.id });
  const { id, hash } = question;
  if (mayAsk(call, question)) return ask(call, codec, sentenceOf(question), { question: id, hash, session: sandbox });
  return result({ session_id: sandbox, status: "waiting", approval: id, next: waitsFor(question, "run again with the same command") });
}

/** Whether an answer is about a command that runs already, not about whether it may. */
export function isAboutRunning({ session }: Asked): boolean {
  return session.includes("/");
}
