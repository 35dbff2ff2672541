/** Tool calls of the Agent Client Protocol: what is told of them, and what the policy is asked about. */
import type { ToolKind } from "../../../base/schema/run.ts";
import { shellLine } from "../../../base/schema/shell-words.ts";
import type { Heard } from "../adapter.ts";
import { list, record, text, type Loose } from "../loose-json.ts";
import type { AskedAction } from "./questions.ts";
import { contentText, nameOf, toolCall, type Entries } from "./wire.ts";

const KINDS: Readonly<Record<string, ToolKind>> = {
  execute: "command",
  edit: "edit",
  delete: "edit",
  move: "edit",
  read: "read",
  search: "search",
  fetch: "fetch",
};

/** The protocol names no tools, only their kinds. */
export function toolOf(update: Loose): string | undefined {
  return nameOf(update["kind"]) || undefined;
}

/** The call, if it was not told yet and enough of it is known: some agents say first that there is one, and then which. */
export function callEvents(
  call: string,
  tool: string,
  title: string,
  update: Loose,
  told: boolean,
): { events: readonly Heard[]; told: boolean } {
  const given = record(update["rawInput"]);
  const paths = pathsOf(update);
  const isKnown =
    Object.keys(given).length > 0 || paths.length > 0 || ["in_progress", "completed", "failed"].includes(text(update["status"]));
  if (told || !isKnown) return { events: [], told };
  const input = Object.keys(given).length > 0 ? given : { title, paths };
  return { events: [toolCall(call, tool, Object.hasOwn(KINDS, tool) ? (KINDS[tool] ?? "other") : "other", input)], told: true };
}

function pathsOf(update: Loose): readonly string[] {
  const diffs = list(update["content"]).map(record);
  const places = [...diffs.filter(({ type }) => type === "diff"), ...list(update["locations"]).map(record)];
  const given = record(update["rawInput"]);
  const named = ["file_path", "filePath", "path", "abs_path", "notebook_path"].map((name) => text(given[name]));
  return [...new Set([...places.map(({ path }) => text(path)), ...named])].filter((path) => path !== "");
}

export function outputOf(update: Loose): string {
  const blocks = list(update["content"]).map(record);
  const told = blocks.map((block) =>
    block["type"] === "content" ? contentText([block["content"]]) : `[${nameOf(block["type"])} ${text(block["path"])}]`,
  );
  const output = update["rawOutput"];
  return told.join("\n") || (typeof output === "string" ? output : text(record(output)["output"]));
}

export function askedActions(tool: string, call: Loose): readonly AskedAction[] {
  const [paths, title] = [pathsOf(call), text(call["title"])];
  switch (tool) {
    case "execute":
      return [commandOf(title, record(call["rawInput"]))];
    case "edit":
    case "move":
      return onPaths("edit", paths);
    case "delete":
      return [...onPaths("edit", paths), ...paths.map((path) => ({ kind: "path", path, access: "delete" }) as const)];
    case "read":
      return onPaths("read", paths);
    case "search":
      return onPaths("grep", paths);
    case "fetch":
      return [{ kind: "tool", tool: "webfetch", argument: text(record(call["rawInput"])["url"]) || title }];
    default:
      return [{ kind: "tool", tool: nameOf(title) || "unknown" }];
  }
}

function onPaths(tool: string, paths: readonly string[]): readonly AskedAction[] {
  return paths.length === 0 ? [{ kind: "tool", tool }] : paths.map((argument) => ({ kind: "tool", tool, argument }));
}

/** Without the input itself the title is the command: Gemini CLI tells it so. */
function commandOf(title: string, given: Loose): AskedAction {
  const { command } = given;
  const words = list(command).map(text);
  const line = text(command) || (words.length > 0 ? shellLine(words) : title);
  return line === "" ? { kind: "tool", tool: "bash" } : { kind: "tool", tool: "bash", argument: line };
}

/** A tool of the gateway, as Gemini CLI and Claude Code name it: the gateway has limits of its own. */
export function isOfGateway(call: Loose): boolean {
  return /^(?:\w+ \(vivarium MCP Server\)|mcp__vivarium__\w+)$/.test(text(call["title"]));
}

/** Options differ from agent to agent; their kinds do not. */
export function answerOptions(options: unknown): Entries<string> {
  const given = list(options).map(record);
  const first = (...kinds: readonly string[]): string =>
    kinds.map((kind) => nameOf(given.find((option) => option["kind"] === kind)?.["optionId"])).find((id) => id !== "") ?? "";
  return { allow: first("allow_once", "allow_always"), reject: first("reject_once", "reject_always") };
}
