/** What sessions of several agents need: lines of JSON, small maps that a hostile program can't let grow, and results as text. */
import { stripVTControlCharacters } from "node:util";
import type { RunEventBody, ToolKind } from "../../../base/schema/run.ts";
import type { AgentStart, Heard } from "../adapter.ts";
import { list, record, text } from "../loose-json.ts";

/** Entries of one map of a session's state. A program that leaves more things open than this loses the oldest. */
const MOST_ENTRIES = 128;
/** Of an id or a name that a program gives. */
const NAME_CHARACTERS = 256;

export type Entries<Value> = Readonly<Record<string, Value>>;

export function lineOf(value: object): string {
  return `${JSON.stringify(value)}\n`;
}

export function raw(stream: "stdout" | "stderr", line: string): readonly Heard[] {
  return [{ event: { type: "raw", stream, text: line } }];
}

/** The value of this name, which may be the name of something that every object has. */
export function entry<Value>(entries: Entries<Value>, name: string): Value | undefined {
  return Object.hasOwn(entries, name) ? entries[name] : undefined;
}

export function withEntry<Value>(entries: Entries<Value>, name: string, value: Value): Entries<Value> {
  const rest = Object.entries(without(entries, name));
  return Object.fromEntries([...rest.slice(Math.max(0, rest.length + 1 - MOST_ENTRIES)), [name, value]]);
}

export function without<Value>(entries: Entries<Value>, name: string): Entries<Value> {
  return Object.fromEntries(Object.entries(entries).filter(([key]) => key !== name));
}

/** An id or a name, as long as one may be. */
export function nameOf(value: unknown): string {
  return text(value).slice(0, NAME_CHARACTERS);
}

type Json = Extract<RunEventBody, { type: "tool_call" }>["input"];

export function toolCall(call: string, tool: string, kind: ToolKind, input: unknown): Heard {
  return { event: { type: "tool_call", call, tool, kind, input: (input ?? null) as Json } };
}

export function toolResult(call: string, tool: string, ok: boolean, output: string): Heard {
  return { event: { type: "tool_result", call, tool, ok, output } };
}

export function said(words: string): readonly Heard[] {
  return words === "" ? [] : [{ event: { type: "message", from: "agent", text: words, message: null } }];
}

export function thought(words: string): readonly Heard[] {
  return words === "" ? [] : [{ event: { type: "thinking", text: words } }];
}

/** Blocks of content as text: those that are none by their type. */
export function contentText(content: unknown): string {
  if (typeof content === "string") return content;
  return list(content)
    .map(record)
    .map((block) => (block["type"] === "text" ? text(block["text"]) : `[${nameOf(block["type"])}]`))
    .join("\n");
}

/** A message as the agent gets it: before the task stands what a restarted agent has to know. */
export function messageText({ task, context }: AgentStart, id: string, words: string): string {
  return id === task.id && context !== null ? `${context}\n\n${words}` : words;
}

/** A line of errors, for the case that it is the last: then it says why the program ended. */
export function lastWordsOf(line: string): string {
  return stripVTControlCharacters(line).trim().slice(0, 512);
}

export function endedWith(title: string, exitCode: number | null, lastError: string): readonly Heard[] {
  if (exitCode === 0) return [];
  const reason = `${title} ended with ${exitCode ?? "a signal"}`;
  return [{ over: "failed", reason: lastError === "" ? `${reason}.` : `${reason}: ${lastError}` }];
}

/** Whether a model API refuses for a while, by the words of an error. */
export function waitsFor(error: string): "rate_limit" | "retry" {
  return /\b(429|529)\b|rate.?limit|overloaded/i.test(error) ? "rate_limit" : "retry";
}
