/** Commands that a chat's model wants to run, with run or try. The project's policy judges them first, as it judges what an agent does. */
import type { RequestStateCodec } from "@modelcontextprotocol/server";
import { VivError } from "../../base/schema/errors.ts";
import { answerOf, ask, mayAsk, sentenceOf, settle, waitsFor } from "./asking.ts";
import type { Asked, Call } from "./call.ts";
import type { Answer } from "./execute-task.ts";
import { clean, result } from "./results.ts";
import { MADE_HERE } from "./sessions.ts";

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

/**
 * Refuses lines for clones that are not there yet, where the policy asks about one or denies it: an answer counts for one sandbox, so a
 * person can only be asked about a line of run. A clone of the project tells which policy holds for the others.
 */
export async function requireAllowed({ client, parts }: Call, project: string, lines: readonly string[]): Promise<void> {
  if (lines.length === 0) return;
  const { id: sandbox } = await client.call("createSandbox", { project, labels: { [MADE_HERE]: "judge" }, env: { ...parts.env } });
  try {
    for (const command of lines) {
      const { verdict, rule, reason } = await client.call("explainPolicy", { sandbox, action: { kind: "command", command } });
      if (verdict === "allow") continue;
      const what = verdict === "ask" ? "asks a person about" : "does not allow";
      throw new VivError("denied", `The policy ${what} ${JSON.stringify(command)}. ${clean(reason)} The rule: ${clean(rule)}.`, {
        remedy: verdict === "ask" ? "Call clone, then run: there the person is asked." : "Do it another way.",
      });
    }
  } finally {
    await client.call("removeSandbox", { sandbox });
  }
}

/** Whether an answer is about a command that runs already, not about whether it may. */
export function isAboutRunning({ session }: Asked): boolean {
  return session.includes("/");
}
