/** Claude Code's tools, as the policy and the events name them. */
import type { PolicyAction } from "../../../base/schema/policy.ts";
import type { ToolKind } from "../../../base/schema/run.ts";
import { entry } from "./wire.ts";

const KINDS: Readonly<Record<string, ToolKind>> = {
  Bash: "command",
  BashOutput: "command",
  KillShell: "command",
  Edit: "edit",
  MultiEdit: "edit",
  Write: "edit",
  NotebookEdit: "edit",
  Read: "read",
  Glob: "search",
  Grep: "search",
  WebFetch: "fetch",
  WebSearch: "fetch",
  Task: "agent",
  Agent: "agent",
};
/** Tools of its own mind, which touch nothing. */
export const HARMLESS = new Set([
  "TodoWrite",
  "TodoRead",
  "ExitPlanMode",
  "EnterPlanMode",
  "ToolSearch",
  "TaskCreate",
  "TaskUpdate",
  "TaskList",
]);
/** What each tool works on, by the name the policy has for it. */
const POLICY_TOOLS: Readonly<Record<string, readonly [tool: string, argument: string]>> = {
  Bash: ["bash", "command"],
  Edit: ["edit", "file_path"],
  MultiEdit: ["edit", "file_path"],
  Write: ["write", "file_path"],
  NotebookEdit: ["edit", "notebook_path"],
  Read: ["read", "file_path"],
  Glob: ["glob", "path"],
  Grep: ["grep", "path"],
  WebFetch: ["webfetch", "url"],
  WebSearch: ["websearch", "query"],
};

export function kindOf(tool: string): ToolKind {
  return entry(KINDS, tool) ?? "other";
}

/** What a call works on, where the policy has a name for that. */
export function argumentOf(tool: string, input: Readonly<Record<string, unknown>>): string | null {
  const name = entry(POLICY_TOOLS, tool)?.[1];
  const given = name === undefined ? undefined : input[name];
  return typeof given === "string" ? given : null;
}

export function actionOf(tool: string, argument: string | null): PolicyAction {
  const name = entry(POLICY_TOOLS, tool)?.[0] ?? tool.toLowerCase();
  return { kind: "tool", tool: name.slice(0, 256) || "unknown", ...(argument === null ? {} : { argument }) };
}

export function claudeTool(tool: string): string {
  const known: Readonly<Record<string, string>> = {
    bash: "Bash",
    edit: "Edit",
    write: "Write",
    read: "Read",
    webfetch: "WebFetch",
    websearch: "WebSearch",
  };
  return entry(known, tool) ?? tool;
}

/** Lines that say nothing which is not told otherwise. */
export const UNTOLD: ReadonlySet<string> = new Set(
  "active_goal auth_status conversation_reset keep_alive prompt_suggestion rate_limit_event result stream_event tool_progress tool_use_summary".split(
    " ",
  ),
);
