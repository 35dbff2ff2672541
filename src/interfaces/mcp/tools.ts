/** One handler a tool. */
import type { RequestStateCodec } from "@modelcontextprotocol/server";
import { LIMITS } from "../../base/schema/limits.ts";
import type { ToolInput, ToolName } from "../../base/schema/mcp.ts";
import { answerOf, ask, mayAsk, sentenceOf, settle, waitsFor } from "./asking.ts";
import type { Asked, Call } from "./call.ts";
import { codeResult, codeWork, pythonContext } from "./code-work.ts";
import { commandFields, commandWork } from "./command-work.ts";
import { screenshot, useDesktop } from "./desktop-tools.ts";
import { inConversation, save } from "./downloads.ts";
import { executeTask, waitForRun, type Answer } from "./execute-task.ts";
import { experimentFields, experimentWork } from "./experiment-work.ts";
import { follow, type Work } from "./follow.ts";
import { list } from "./listing.ts";
import { promote, undo } from "./person-tools.ts";
import { trustedProject } from "./projects.ts";
import { patchOf } from "./resources.ts";
import { clean, result } from "./results.ts";
import { isAboutRunning, questionBefore, requireAllowed } from "./run-command.ts";
import { filesCreated, taskResult } from "./run-work.ts";
import { isOurs, MADE_HERE, notOurs, openSession, ownSandbox, requireOurs, sandboxOf, startAgain } from "./sessions.ts";

type Codec = RequestStateCodec<Asked>;
type Handlers = { readonly [Name in ToolName]: (call: Call, input: ToolInput<Name>, codec: Codec) => Promise<Answer> };

const SECOND_MS = 1000;

export const HANDLERS: Handlers = {
  execute_task: (call, input, codec) => executeTask(call, codec, input),
  wait: (call, { session_id }, codec) => wait(call, codec, session_id),
  get_sandbox_status: async (call, { session_id }) => status(call, session_id),
  download_files: download,
  cleanup_sandbox: async (call, { session_id }) => cleanUp(call, session_id),
  clone: async ({ client, parts }, { project }) => {
    const folder = trustedProject(parts, project);
    const { id, name, notes } = await client.call("createSandbox", {
      project: folder,
      labels: { [MADE_HERE]: "clone" },
      env: { ...parts.env },
    });
    return result({ session_id: id, name, project: folder, notes: notes.map(clean), next: `Call run with session_id ${id}.` });
  },
  run: async (call, { session_id, command, timeout }, codec) => {
    const back = answerOf(call);
    if (back !== undefined && isAboutRunning(back.asked)) return wait(call, codec, session_id);
    const sandbox = await sandboxOf(call, session_id);
    await requireOurs(call.client, sandbox);
    const question = await questionBefore(call, codec, sandbox, command);
    if (question !== undefined) return question;
    const started = await call.client.call("runCommand", {
      sandbox,
      command: ["sh", "-c", command],
      timeoutMs: timeout * SECOND_MS,
      background: true,
    });
    return waitForWork(call, codec, `${sandbox}/${started.id}`);
  },
  diff: async (call, { session_id }) => {
    const { client } = call;
    const sandbox = await sandboxOf(call, session_id);
    const { entries, more } = await client.call("diffSandbox", { sandbox, stat: true });
    const patch = clean(await patchOf(client, sandbox));
    const isWhole = patch.length <= LIMITS.toolTextCharacters;
    return result({
      session_id,
      files: entries.slice(0, LIMITS.maxGivenFiles).map(({ path, status: what }) => `${what} ${clean(path)}`),
      more,
      patch: isWhole ? patch : patch.slice(0, LIMITS.toolTextCharacters),
      ...(isWhole ? {} : { next: `The patch is cut. Read the resource viv://${sandbox}/diff for all of it.` }),
    });
  },
  try: async (call, { task, agents = ["claude"], commands = [], checks, project }, codec) => {
    if (answerOf(call) !== undefined) return wait(call, codec, "");
    const ways = task === undefined ? commands.map((command) => ({ command })) : agents.map((agent) => ({ agent: { task, agent } }));
    const folder = trustedProject(call.parts, project);
    await requireAllowed(call, folder, [...commands, ...(checks ?? [])]);
    const started = await call.client.call("startExperiment", {
      project: folder,
      attempts: ways.map((way, index) => ({ name: `${MADE_HERE}-${index + 1}`, ...way })),
      ...(checks === undefined ? {} : { checks }),
      env: { ...call.parts.env },
    });
    return waitForWork(call, codec, started.id);
  },
  use_desktop: useDesktop,
  screenshot,
  python,
  python_context: pythonContext,
  promote: (call, input, codec) => promote(call, codec, input),
  undo: (call, input, codec) => undo(call, codec, input),
  list,
};

async function python(call: Call, { session_id, timeout, ...given }: ToolInput<"python">, codec: Codec): Promise<Answer> {
  if (answerOf(call) !== undefined) return wait(call, codec, session_id ?? "");
  const sandbox = await ownSandbox(call, session_id);
  call.tell("Starting Python");
  const { id } = await call.client.call("executeCode", {
    sandbox,
    ...given,
    background: true,
    ...(timeout === undefined ? {} : { timeout: timeout * SECOND_MS }),
  });
  return waitForWork(call, codec, `${sandbox}/${id}`);
}

/** To the end of the work, to a question for the person, or as long as the client waits. */
async function wait(call: Call, codec: Codec, id: string): Promise<Answer> {
  const back = answerOf(call);
  if (back !== undefined) await settle(call, back.asked, back.answer);
  return waitForWork(call, codec, back?.asked.session ?? id);
}

async function waitForWork(call: Call, codec: Codec, meant: string): Promise<Answer> {
  const session = await openSession(call, meant);
  if (session.kind === "run") return waitForRun(call, codec, meant);
  if (session.kind === "experiment")
    return waitFor(call, codec, meant, experimentWork(call.client, meant), (state, next) => result(experimentFields(state, next)));
  if (session.kind === "command")
    return waitFor(call, codec, meant, commandWork(call.client, session.sandbox, session.command), (state, next) =>
      result(commandFields(meant, state, next)),
    );
  if (session.kind === "code") return waitFor(call, codec, meant, codeWork(call.client, session.sandbox, session.execution), codeResult);
  return status(call, meant);
}

/** `told` gets what to say next where the work waits for a person whom this client can't ask. */
async function waitFor<State>(
  call: Call,
  codec: Codec,
  id: string,
  work: Work<State>,
  told: (state: State, next?: string) => Answer,
): Promise<Answer> {
  const { state, question } = await follow(call, work);
  if (question === undefined || work.isOver(state)) return told(state);
  if (mayAsk(call, question)) return ask(call, codec, sentenceOf(question), { question: question.id, hash: question.hash, session: id });
  return told(state, waitsFor(question, `wait with session_id ${id}`));
}

async function status(call: Call, id: string): Promise<Answer> {
  const { client } = call;
  const session = await openSession(call, id);
  if (session.kind === "run") {
    const isOver = session.run.endedAt !== null;
    return result(await taskResult(client, session.run, isOver ? undefined : `It still works. Call wait with session_id ${id}.`));
  }
  if (session.kind === "experiment") return result(experimentFields(session.experiment));
  if (session.kind === "command")
    return result(commandFields(id, await client.call("inspectCommand", { sandbox: session.sandbox, command: session.command })));
  if (session.kind === "code") return codeResult(await client.call("inspectExecution", session));
  const { state, name, project, reason, createdAt } = await client.call("findSandbox", { sandbox: session.sandbox });
  return result({
    session_id: session.sandbox,
    status: state,
    name,
    project,
    created_at: createdAt,
    files_created: await filesCreated(client, session.sandbox),
    ...(reason === null ? {} : { reason: clean(reason) }),
  });
}

async function download(call: Call, { session_id, paths, save: isSaved }: ToolInput<"download_files">): Promise<Answer> {
  const { client, parts } = call;
  const session = await openSession(call, session_id);
  const sandbox = await sandboxOf(call, session_id);
  await startAgain(client, sandbox);
  const experiment = session.kind === "run" ? session.run.experiment : null;
  const inputs = experiment === null ? [] : (await client.call("inspectExperiment", { experiment })).inputs;
  const wanted = paths ?? (await filesCreated(client, sandbox, inputs));
  if (!isSaved) return result({ session_id, files: await inConversation(client, sandbox, wanted) });
  return result({ session_id, ...(await save(client, sandbox, wanted, parts, session_id.slice(0, 12))) });
}

async function cleanUp(call: Call, id: string): Promise<Answer> {
  const { client } = call;
  const session = await openSession(call, id);
  if (session.kind === "run" || session.kind === "experiment") {
    const experiment = session.kind === "run" ? session.run.experiment : session.experiment.id;
    if (experiment === null || !isOurs(await client.call("inspectExperiment", { experiment }))) throw notOurs("This work");
    await client.call("removeExperiment", { experiment });
  } else {
    await requireOurs(client, session.sandbox);
    await client.call("removeSandbox", { sandbox: session.sandbox });
  }
  return result({ session_id: id, status: "removed" });
}
