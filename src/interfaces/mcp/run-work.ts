/** A run of an agent, as a tool waits for it and tells of it. */
import { createHash } from "node:crypto";
import type { Client } from "../client/client.ts";
import type { Experiment } from "../../base/schema/experiment.ts";
import type { Run, RunEvent } from "../../base/schema/run.ts";
import type { Work } from "./follow.ts";
import { clean, lastPart } from "./results.ts";
import { startAgain } from "./sessions.ts";

/** Events between which something may have changed that a look shows. */
const TURNS: ReadonlySet<RunEvent["type"]> = new Set(["waiting", "resumed", "finished", "error"]);
const LINE_CHARACTERS = 300;
const MOST_EVENTS = 1_000;

export function runWork(client: Client, id: string): Work<Run> {
  return {
    look: () => client.call("inspectRun", { run: id }),
    isOver: ({ endedAt }) => endedAt !== null,
    sandboxes: ({ sandbox }) => (sandbox === null ? [] : [sandbox]),
    listen: (tell, signal) => turns(client, id, tell, signal),
    cancel: async () => {
      const { experiment } = await client.call("inspectRun", { run: id });
      await (experiment === null ? client.call("stopRun", { run: id }) : client.call("cancelExperiment", { experiment }));
    },
  };
}

async function* turns(client: Client, id: string, tell: (text: string) => void, signal: AbortSignal): AsyncGenerator<void, void, void> {
  for await (const event of client.runEvents(id, 0, signal)) {
    const line = lineOf(event);
    if (line !== undefined) tell(line);
    if (TURNS.has(event.type)) yield;
  }
}

/** What an event says in a log; undefined for what says nothing to a reader. */
function lineOf(event: RunEvent): string | undefined {
  switch (event.type) {
    case "started":
      return `${event.agent} has begun`;
    case "message":
      return event.from === "agent" ? event.text : event.from === "person" ? undefined : `[${event.from}] ${event.text}`;
    case "tool_call":
      return `> ${event.tool} ${one(mainOf(event.input))}`;
    case "tool_result":
      return event.ok ? undefined : `  failed: ${one(event.output)}`;
    case "waiting":
      return `  waits: ${one(event.text)}`;
    case "guardian":
      return `  guardian: ${one(event.evidence)}`;
    case "raw":
      return event.stream === "stderr" ? `  ${one(event.text)}` : undefined;
    case "error":
      return `  error: ${one(event.text)}`;
    default:
      return undefined;
  }
}

/** The one field of a call that says what it does. */
function mainOf(input: Extract<RunEvent, { type: "tool_call" }>["input"]): string {
  const given = typeof input === "object" && input !== null && !Array.isArray(input) ? input : {};
  const main = ["command", "cmd", "file_path", "filePath", "path", "url", "pattern", "query"]
    .map((name) => given[name])
    .find((value) => value !== undefined);
  return typeof main === "string" ? main : JSON.stringify(main ?? given);
}

function one(text: string): string {
  const line = text.trim().replaceAll(/\s+/g, " ");
  return line.length > LINE_CHARACTERS ? `${line.slice(0, LINE_CHARACTERS)}...` : line;
}

/** What the agent said and did, a line each. */
export async function runLog(client: Client, id: string): Promise<string> {
  const lines: string[] = [];
  let after = 0;
  for (;;) {
    const { events } = await client.call("listRunEvents", { run: id, after, limit: MOST_EVENTS });
    lines.push(...events.flatMap((event) => lineOf(event) ?? []));
    const last = events.at(-1)?.sequence;
    if (last === undefined || events.length < MOST_EVENTS) return clean(lines.join("\n"));
    after = last;
  }
}

export type TaskStatus = "completed" | "failed" | "timeout" | "running";

export function statusOf({ endedAt, state, outcome }: Run): TaskStatus {
  if (endedAt === null) return "running";
  if (outcome === "timeout") return "timeout";
  return state === "completed" ? "completed" : "failed";
}

/** What programs that install packages leave in a workspace: no result of the task. */
const DEPENDENCIES = /(?:^|\/)(?:node_modules|\.venv|venv|__pycache__|\.git|\.cache|\.npm|\.local|\.config)\//;
const MOST_FILES = 1_000;

type Inputs = NonNullable<Experiment["inputs"]>;

/** Files that were not there before, but for those that the caller gave and that are as they were given. */
export async function filesCreated(client: Client, sandbox: string | null, inputs: Inputs = []): Promise<string[]> {
  if (sandbox === null) return [];
  const { entries } = await client.call("diffSandbox", { sandbox });
  const given = new Map(inputs.map(({ path, sha256 }) => [path, sha256]));
  if (entries.some(({ path }) => given.has(path))) await startAgain(client, sandbox);
  const made: string[] = [];
  for (const { path, status, type } of entries) {
    const hash = given.get(path);
    const isMade = hash === undefined ? status === "added" : status !== "deleted";
    if (type !== "file" || !isMade || DEPENDENCIES.test(path)) continue;
    if (hash === undefined || (await hashOf(client, sandbox, path)) !== hash) made.push(path);
    if (made.length === MOST_FILES) break;
  }
  return made;
}

async function hashOf(client: Client, sandbox: string, path: string): Promise<string> {
  const { body } = await client.readFile(sandbox, path);
  const hash = createHash("sha256");
  for await (const chunk of body as AsyncIterable<Buffer>) hash.update(chunk);
  return hash.digest("hex");
}

/** Exactly what S3 names; work that goes on says what to call next. */
export async function taskResult(client: Client, run: Run, next?: string): Promise<Record<string, unknown>> {
  const status = statusOf(run);
  const experiment: Experiment | undefined =
    run.experiment === null ? undefined : await client.call("inspectExperiment", { experiment: run.experiment });
  const log = await runLog(client, run.id);
  const why =
    status === "completed" || run.reason === null
      ? ""
      : `\n${status === "running" ? "" : `It ${status === "timeout" ? "ran out of time" : "failed"}: `}${clean(run.reason)}`;
  const ended = run.endedAt === null ? Date.now() : Date.parse(run.endedAt);
  return {
    session_id: run.id,
    status,
    output: `${lastPart(log)}${why}`.trim(),
    files_created: status === "running" ? [] : await filesCreated(client, run.sandbox, experiment?.inputs),
    duration_seconds: Math.round((ended - Date.parse(run.createdAt)) / 100) / 10,
    ...(next === undefined ? {} : { next }),
  };
}
