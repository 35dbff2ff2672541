/** What an agent does, a line each, for people. Its texts are cleaned: they come from a sandbox. */
import type { RunEvent } from "../../base/schema/run.ts";
import type { Screen } from "./screen.ts";
import { clean } from "./text.ts";

const SHOWN = 400;

/** The line of an event; undefined for what says nothing to a person. */
export function runLine(event: RunEvent, screen: Pick<Screen, "paintRemark">): string | undefined {
  const dim = (text: string): string => screen.paintRemark("dim", text);
  switch (event.type) {
    case "started":
      return dim(`${[event.agent, event.version, event.model].filter((part) => part !== null).join(" ")} has begun`);
    case "message":
      return event.from === "agent" ? one(event.text) : screen.paintRemark("cyan", `> ${one(event.text)}`);
    case "tool_call":
      return dim(callLine(event));
    case "tool_result":
      if (event.ok && isAsking(event.tool)) return answerLine(event.output);
      return event.ok ? undefined : screen.paintRemark("red", `  ${event.tool} failed: ${one(event.output, 160)}`);
    case "file_change":
      return dim(
        `  changed ${event.paths
          .slice(0, 3)
          .map((path) => one(path, 100))
          .join(", ")}${rest(event.paths.length - 3 + event.more)}`,
      );
    case "waiting":
      return screen.paintRemark("yellow", `  waits${event.until === null ? "" : ` until ${event.until}`}: ${one(event.text)}`);
    case "guardian":
      return screen.paintRemark("yellow", `  guardian: ${event.step}, ${event.detector}: ${one(event.evidence)}`);
    case "error":
      return screen.paintRemark("red", one(event.text));
    case "gap":
      return dim(`  ${event.bytes} bytes of its output were lost`);
    default:
      return undefined;
  }
}

/** Another agent is asked; agents have several ways to call a tool of Vivarium. */
function isAsking(tool: string): boolean {
  return /(?:^|[_.])coordinate_sibling$/.test(tool);
}

function answerLine(output: string): string | undefined {
  try {
    const { fromName, answer } = JSON.parse(output) as { readonly fromName?: unknown; readonly answer?: unknown };
    if (typeof fromName !== "string") return undefined;
    return `  ${one(fromName, 64)}: ${one(typeof answer === "string" ? answer : JSON.stringify(answer))}`;
  } catch {
    // It was shortened, or is of another tool of that name.
    return undefined;
  }
}

function callLine({ tool, kind, input }: Extract<RunEvent, { type: "tool_call" }>): string {
  const given = typeof input === "object" && input !== null && !Array.isArray(input) ? input : {};
  const { targetSandboxId: whom, action, title } = given;
  if (/(?:^|[_.])create_task$/.test(tool) && typeof title === "string") return `  leaves for later: ${one(title)}`;
  if (isAsking(tool) && typeof whom === "string" && typeof action === "string") return `  asks ${one(whom, 64)}: ${one(action)}`;
  const main = ["command", "cmd", "file_path", "filePath", "path", "url", "pattern", "query"]
    .map((name) => given[name])
    .find((value) => value !== undefined);
  const what = typeof main === "string" ? main : JSON.stringify(main ?? given);
  return kind === "command" ? `  $ ${one(what)}` : `  ${one(tool, 60)} ${one(what)}`;
}

function rest(count: number): string {
  return count > 0 ? ` and ${count} more` : "";
}

/** In one line, and not too long. */
function one(text: string, most = SHOWN): string {
  const line = clean(text.trim().replace(/\s+/g, " "));
  return line.length > most ? `${line.slice(0, most)}...` : line;
}
