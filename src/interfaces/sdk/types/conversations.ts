// Made from the contracts by scripts/sdk-types.ts.

/** A part of a view: a record, or a summary of several. */
export interface ContextEntry {
  /** ISO time. */
  at: string;
  /** Who speaks: the task itself, a person, the agent, a tool that it used, the server, or the guardian. */
  role: "task" | "person" | "agent" | "tool" | "system" | "guardian";
  /** What it is: a message, a call of a tool, what that gave, a decision, or a summary of earlier records. */
  kind: "text" | "tool-call" | "tool-result" | "decision" | "summary";
  /** What was said. Of very long output the beginning and the end; the log of the command has the rest. */
  text: string;
  /** What it takes of the budget. */
  tokens: number;
  /** Name of the tool, for a call and its result. */
  tool: string | null;
  /** What joins a call and its result. */
  callId: string | null;
  /** Every view shows it. Tasks and decisions are pinned; calls and results never are. */
  pinned: boolean;
  /** The first record that it stands for. */
  from: number;
  /** The last one; the same for a single record. */
  to: number;
  /** whole is as it was kept; a summary stands for several records. */
  form: "whole" | "shortened" | "summary";
}

/** A record that a search found. */
export interface ConversationHit {
  /** Position in the conversation of the run, from 1 on, without gaps. */
  sequence: number;
  /** ISO time. */
  at: string;
  /** Who speaks: the task itself, a person, the agent, a tool that it used, the server, or the guardian. */
  role: "task" | "person" | "agent" | "tool" | "system" | "guardian";
  /** What it is: a message, a call of a tool, what that gave, a decision, or a summary of earlier records. */
  kind: "text" | "tool-call" | "tool-result" | "decision" | "summary";
  /** Name of the tool, for a call and its result. */
  tool: string | null;
  /** What joins a call and its result. */
  callId: string | null;
  /** Id of the run. */
  run: string;
  /** Folder of its project. */
  project: string;
  /** The part of its text that fits best. */
  excerpt: string;
  /** How it was found. */
  by: ("words" | "meaning")[];
}
