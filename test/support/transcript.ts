/**
 * Conversations of adapters with the real programs. Each is a file of lines of JSON: what the program wrote, what the engine asked of
 * the session, what the session wrote for that, and the end. `record-agent.ts` makes them.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Adapter, AgentStart, Heard, Session, SessionState } from "../../src/work/agents/adapter.ts";

export type Entry =
  | { readonly conversation: string | null }
  | { readonly out: string }
  | { readonly err: string }
  | { readonly message: readonly [id: string, text: string]; readonly wrote: string }
  | { readonly answer: readonly [request: string, allowed: boolean, reason: string]; readonly wrote: string }
  | { readonly interrupt: true; readonly wrote: string }
  | { readonly exit: number | null };

/** Folders of the recording are called so. */
export const PROJECT = "/project";
export const FOLDER = "/agent";
const FILES = join(import.meta.dirname, "../corpus/adapters");

export function transcripts(agent: string): string[] {
  return readdirSync(join(FILES, agent)).map((file) => file.replace(/\.jsonl$/, ""));
}

export function transcript(agent: string, name: string): Entry[] {
  return readFileSync(join(FILES, agent, `${name}.jsonl`), "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Entry);
}

export const TASK = { id: "msg_task", text: "do it" };

export function startOf(values: Partial<AgentStart> = {}): AgentStart {
  return {
    run: "run_1",
    task: TASK,
    sandbox: "sb_1",
    project: PROJECT,
    program: "program",
    model: "demo",
    folder: FOLDER,
    models: {},
    gateway: "http://127.0.0.1:4097",
    policy: { text: "Be good.", lackedTools: [], rules: {} },
    conversation: null,
    context: null,
    ...values,
  };
}

/** What a session makes of it. With `handOver` a new session goes on from the state after every line, as another server would. */
export function replay(
  adapter: Adapter,
  entries: readonly Entry[],
  handOver = false,
): { heard: Heard[]; wrote: string[]; state: SessionState } {
  const [first] = entries;
  const start = startOf({ conversation: first !== undefined && "conversation" in first ? first.conversation : null });
  let session = adapter.session(start);
  const heard: Heard[] = [...session.begin()];
  const wrote: string[] = [];
  for (const entry of entries) {
    if (handOver) session = adapter.session(start, JSON.parse(JSON.stringify(session.state)) as SessionState);
    const { came, written } = play(session, entry);
    heard.push(...came);
    if (written !== undefined) wrote.push(written);
  }
  return { heard, wrote, state: session.state };
}

function play(session: Session, entry: Entry): { came: readonly Heard[]; written?: string | undefined } {
  if ("out" in entry) return { came: session.line(entry.out) };
  if ("err" in entry) return { came: session.errorLine(entry.err) };
  if ("message" in entry) return { came: [], written: session.message(...entry.message) };
  if ("answer" in entry) return { came: [], written: session.answer(...entry.answer) };
  if ("interrupt" in entry) return { came: [], written: session.interrupt() };
  return { came: "exit" in entry ? session.end(entry.exit) : [] };
}

/** What was written at the recording. */
export function recordedWrites(entries: readonly Entry[]): string[] {
  return entries.flatMap((entry) => ("wrote" in entry ? [entry.wrote] : []));
}

/** Events in short, without what differs from run to run. */
export function shown(heard: readonly Heard[]): string[] {
  return heard.flatMap((each) => {
    if ("event" in each) return [`${each.event.type} ${details(each.event)}`.trim()];
    if ("request" in each) return [`request ${JSON.stringify(each.action)}`];
    if ("delivered" in each) return [`delivered ${each.delivered}`];
    if ("refused" in each) return [`refused ${each.refused}`];
    if ("over" in each) return [`over ${each.over}`];
    return "turnEnded" in each ? ["turnEnded"] : [];
  });
}

function details(event: Extract<Heard, { event: unknown }>["event"]): string {
  switch (event.type) {
    case "message":
    case "thinking":
    case "finished":
      return event.text;
    case "tool_call":
      return `${event.tool} ${event.kind}`;
    case "tool_result":
      return `${event.tool} ${event.ok ? "ok" : "failed"} ${event.output.trim()}`;
    case "waiting":
    case "resumed":
      return event.for;
    case "turn":
      return event.state;
    default:
      return "";
  }
}
