/** Items of Codex's turns: what it says, thinks and does. */
import type { ToolKind } from "../../../base/schema/run.ts";
import { shellWord } from "../../../base/schema/shell-words.ts";
import type { Heard } from "../adapter.ts";
import { list, record, text, type Loose } from "../loose-json.ts";
import type { AskedAction } from "./questions.ts";
import { contentText, nameOf, said, thought, toolCall, toolResult, type Entries } from "./wire.ts";

/** What is done to files, by path. */
export type FileChanges = Entries<"add" | "update" | "delete">;

interface Tool {
  readonly name: string;
  readonly kind: ToolKind;
  readonly input: unknown;
}

function toolOf(item: Loose): Tool | undefined {
  switch (item["type"]) {
    case "commandExecution":
      return { name: "shell", kind: "command", input: { command: plainCommand(text(item["command"])), cwd: item["cwd"] } };
    case "fileChange":
      return { name: "apply_patch", kind: "edit", input: { changes: item["changes"] } };
    case "mcpToolCall":
      return { name: `${nameOf(item["server"])}.${nameOf(item["tool"])}`, kind: "other", input: item["arguments"] };
    case "dynamicToolCall":
      return { name: nameOf(item["tool"]), kind: "other", input: item["arguments"] };
    case "collabAgentToolCall":
      return { name: nameOf(item["tool"]), kind: "agent", input: { prompt: item["prompt"] } };
    case "webSearch":
      return { name: "web_search", kind: "fetch", input: { query: item["query"] } };
    case "imageView":
      return { name: "view_image", kind: "read", input: { path: item["path"] } };
    default:
      return undefined;
  }
}

export function itemStarted(call: string, item: Loose): { events: readonly Heard[]; tool?: string; changes?: FileChanges } {
  const tool = toolOf(item);
  if (tool === undefined) return { events: [] };
  const started = { events: [toolCall(call, tool.name, tool.kind, tool.input)], tool: tool.name };
  return item["type"] === "fileChange" ? { ...started, changes: changesOf(item["changes"]) } : started;
}

export function itemEnded(call: string, item: Loose, isBegun: boolean): readonly Heard[] {
  if (item["type"] === "agentMessage") return said(text(item["text"]));
  if (item["type"] === "reasoning") return thought([...list(item["summary"]), ...list(item["content"])].map(text).join("\n"));
  const tool = toolOf(item);
  if (tool === undefined) return [];
  const begun = isBegun ? [] : [toolCall(call, tool.name, tool.kind, tool.input)];
  const { status, exitCode } = item;
  const ok = status === undefined || (status === "completed" && (exitCode ?? 0) === 0);
  return [...begun, toolResult(call, tool.name, ok, outputOf(item))];
}

function outputOf(item: Loose): string {
  const { status, exitCode } = item;
  if (status === "declined") return "It was not allowed.";
  const error = text(record(item["error"])["message"]);
  const output = text(item["aggregatedOutput"]) || contentText(record(item["result"])["content"]) || error;
  return typeof exitCode === "number" && exitCode !== 0 ? `${output}\n[exit code ${exitCode}]` : output;
}

const MOST_CHANGES = 100;

/** Too many to be told one by one are told as none, and so are judged by the tool alone. */
function changesOf(given: unknown): FileChanges {
  const changes = list(given).map(record);
  if (changes.length > MOST_CHANGES) return {};
  return Object.fromEntries(
    changes.flatMap((change) => {
      const { type, move_path: moved } = record(change["kind"]);
      const kind = type === "add" || type === "delete" ? type : "update";
      const target = text(moved);
      return [[text(change["path"]), kind] as const, ...(target === "" ? [] : [[target, "add"] as const])];
    }),
  );
}

export function fileActions(changes: FileChanges): readonly AskedAction[] {
  const actions = Object.entries(changes).flatMap(([path, kind]): AskedAction[] => {
    if (kind === "add") return [{ kind: "tool", tool: "write", argument: path }];
    const edit: AskedAction = { kind: "tool", tool: "edit", argument: path };
    return kind === "delete" ? [edit, { kind: "path", path, access: "delete" }] : [edit];
  });
  return actions.length > 0 ? actions : [{ kind: "tool", tool: "edit" }];
}

/** What it did, of an item that it did not ask about. */
export function unaskedActions(item: Loose, project: string): readonly Heard[] {
  if (item["status"] !== "completed" && item["status"] !== "failed") return [];
  if (item["type"] === "commandExecution") return [{ unasked: commandOf(item, project), tool: "shell" }];
  if (item["type"] !== "fileChange") return [];
  return fileActions(changesOf(item["changes"])).map((unasked) => ({ unasked, tool: "apply_patch" }));
}

/** A command that runs elsewhere than in the project is judged as one that goes there first. */
export function commandOf(params: Loose, project: string): AskedAction {
  const [command, cwd] = [plainCommand(text(params["command"])), text(params["cwd"])];
  if (command === "") return { kind: "tool", tool: "bash" };
  const argument = cwd === "" || cwd === project ? command : `cd ${shellWord(cwd)} && ${command}`;
  return { kind: "tool", tool: "bash", argument };
}

const SHELL = /^(?:\/\S*\/)?(?:ba|z|da)?sh -l?c (.+)$/s;

/** Codex hands each line to a shell, quoted; people and rules mean the line itself. */
function plainCommand(command: string): string {
  const [, quoted = ""] = SHELL.exec(command) ?? [];
  if (/^[\w@%+=:,./-]+$/.test(quoted)) return quoted;
  if (/^'[^']*'$/s.test(quoted)) return quoted.slice(1, -1);
  // One word in double quotes in which nothing is left for the shell to replace. Whatever else is there is judged as it stands.
  return /^"(?:[^"\\$`]|\\["\\$`])*"$/s.test(quoted) ? quoted.slice(1, -1).replaceAll(/\\(["\\$`])/g, "$1") : command;
}

/** Notifications that we have no use for. */
const KNOWN =
  /^(?:thread|turn|item|account|mcpServer|project|skills|hook|app|remoteControl|fs|fuzzyFileSearch|model|modelProvider|rawResponse|rawResponseItem|process|command|externalAgentConfig|autoApprovalReview|windows|windowsSandbox)\/|^(?:error|configWarning|deprecationNotice)$/;

export function isKnown(method: string): boolean {
  return KNOWN.test(method);
}
