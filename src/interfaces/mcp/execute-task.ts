/** execute_task and wait: an agent does a task, and a caller gets the result, or a handle before its patience ends. */
import type { CallToolResult, InputRequiredResult, RequestStateCodec, ResourceLink } from "@modelcontextprotocol/server";
import { VivError } from "../../base/schema/errors.ts";
import { TASK_AGENTS, type ToolInput } from "../../base/schema/mcp.ts";
import type { Question } from "../../base/schema/question.ts";
import type { Run } from "../../base/schema/run.ts";
import { answerOf, ask, mayAsk, sentenceOf, settle, waitsFor } from "./asking.ts";
import type { Asked, Call } from "./call.ts";
import { follow } from "./follow.ts";
import { trustedProject } from "./projects.ts";
import { result } from "./results.ts";
import { runWork, taskResult } from "./run-work.ts";
import { fileUri, MADE_HERE } from "./sessions.ts";
import { packed, readUploads, sha256Of, type Upload } from "./uploads.ts";
import { isAboutLevel, levelFor } from "./wider-level.ts";

export type Answer = CallToolResult | InputRequiredResult;

const LINKED_FILES = 20;
const SECOND_MS = 1000;

export async function executeTask(call: Call, codec: RequestStateCodec<Asked>, input: ToolInput<"execute_task">): Promise<Answer> {
  const back = answerOf(call);
  if (back !== undefined && !isAboutLevel(back.asked)) {
    await settle(call, back.asked, back.answer);
    return waitForRun(call, codec, back.asked.session);
  }
  call.tell("Making a sandbox");
  const begun = await begin(call, codec, input);
  return typeof begun === "string" ? waitForRun(call, codec, begun) : begun;
}

/**
 * Files are there before the agent begins: they go into a sandbox of their own, and the agent starts in a copy of that. The id of its
 * run, or a question that the person answers first.
 */
async function begin(call: Call, codec: RequestStateCodec<Asked>, input: ToolInput<"execute_task">): Promise<string | Answer> {
  const { client } = call;
  const uploads = readUploads(input.files);
  const place = input.project === undefined ? { empty: true } : { project: trustedProject(call.parts, input.project) };
  const made = await client.call("createSandbox", {
    ...place,
    labels: { [MADE_HERE]: "upload" },
    env: { ...call.parts.env },
  });
  try {
    const { yolo, question } = await levelFor(call, codec, made.id, input);
    if (question !== undefined) return question;
    await upload(call, made.id, uploads);
    const started = await client.call("startExperiment", {
      from: made.id,
      ...(yolo === undefined ? {} : { yolo }),
      inputs: uploads.map(({ path, content }) => ({ path, sha256: sha256Of(content) })),
      attempts: [{ name: MADE_HERE, agent: { task: input.task_description, agent: TASK_AGENTS[input.agent] } }],
      timeoutMs: input.timeout * SECOND_MS,
      checks: [],
      pick: "none",
      env: { ...call.parts.env },
    });
    const run = started.attempts[0]?.run;
    if (run == null) throw new VivError("internal", "The experiment has no run.");
    return run;
  } finally {
    await client.call("removeSandbox", { sandbox: made.id });
  }
}

async function upload({ client }: Call, sandbox: string, uploads: readonly Upload[]): Promise<void> {
  if (uploads.length > 0) await client.unpackFiles(sandbox, ".", packed(uploads));
}

export async function waitForRun(call: Call, codec: RequestStateCodec<Asked>, id: string): Promise<Answer> {
  const { state: run, question } = await follow(call, runWork(call.client, id));
  if (run.endedAt !== null) return ended(call, run);
  if (question !== undefined && mayAsk(call, question))
    return ask(call, codec, sentenceOf(question), { question: question.id, hash: question.hash, session: id });
  return result(await taskResult(call.client, run, nextFor(run, question)));
}

function nextFor({ id }: Run, question: Question | undefined): string {
  const again = `wait with session_id ${id}`;
  return question === undefined ? `It still works. Call ${again}.` : waitsFor(question, again);
}

async function ended({ client }: Call, run: Run): Promise<CallToolResult> {
  const fields = await taskResult(client, run);
  const files = fields["files_created"] as readonly string[];
  const links = files
    .slice(0, LINKED_FILES)
    .map((name): ResourceLink => ({ type: "resource_link", uri: fileUri(run.sandbox ?? "", name), name }));
  return result(fields, links);
}
