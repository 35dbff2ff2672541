/** A level of autonomy that is wider than the project's, or than the default: a model may ask for it, and the person decides. */
import { createHash } from "node:crypto";
import type { RequestStateCodec } from "@modelcontextprotocol/server";
import { VivError } from "../../base/schema/errors.ts";
import type { ToolInput } from "../../base/schema/mcp.ts";
import { isWider, type YoloLevel } from "../../base/schema/policy.ts";
import { answerOf, ask } from "./asking.ts";
import type { Asked, Call } from "./call.ts";
import type { Answer } from "./execute-task.ts";

type TaskInput = ToolInput<"execute_task">;

/** In the place of the id of a question: the server knows of none here. */
const ABOUT_LEVEL = "yolo_level";

const ALLOWS: Readonly<Record<YoloLevel, string>> = { 1: "files", 2: "files and network", 3: "all but privileged", 4: "all inside" };

export function isAboutLevel({ question }: Asked): boolean {
  return question === ABOUT_LEVEL;
}

/** The level that the task's sandbox gets beside its own; a question for the person, where that is wider than its own. */
export async function levelFor(
  call: Call,
  codec: RequestStateCodec<Asked>,
  sandbox: string,
  input: TaskInput,
): Promise<{ readonly yolo?: YoloLevel; readonly question?: Answer }> {
  const { yolo_level: wanted } = input;
  if (wanted === undefined) return {};
  const { autonomy, title } = await call.client.call("inspectPolicy", { sandbox });
  if (!isWider(wanted, autonomy)) return { yolo: wanted };
  const { approver } = call;
  if (approver === undefined) throw refused(`yolo_level ${wanted} allows more than ${title}, and this client can't ask its person.`);
  const hash = createHash("sha256").update(JSON.stringify(input)).digest("hex");
  const back = answerOf(call);
  if (back === undefined) {
    const asked = { question: ABOUT_LEVEL, hash, session: ABOUT_LEVEL };
    return { question: await ask(call, codec, sentenceOf(input, wanted, title), asked) };
  }
  if (back.answer !== "yes" || back.asked.hash !== hash) throw refused(`The person did not allow yolo_level ${wanted}.`);
  // The server looks at the approver's token: without it this is refused. The copy that the agent works in has the level, too.
  await call.client.call("setPolicy", { sandbox, yolo: wanted, approver });
  return {};
}

function sentenceOf({ task_description: task, project }: TaskInput, wanted: YoloLevel, now: string): string {
  return [
    `Let the agent of this task do more without asking: yolo ${wanted} (${ALLOWS[wanted]}) instead of ${now}?`,
    `Task: ${task.slice(0, 500)}`,
    ...(project === undefined ? [] : [`Project: ${project}`]),
  ].join("\n");
}

function refused(why: string): VivError {
  return new VivError("denied", why, {
    remedy: "Call execute_task again without yolo_level. The person can set a level for the project in its vivarium.json.",
  });
}
