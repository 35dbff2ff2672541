/** What a tool answers: JSON that programs read, and the same as text for models. */
import type { CallToolResult, ContentBlock } from "@modelcontextprotocol/server";
import { VivError, type ErrorCode } from "../../base/schema/errors.ts";
import { LIMITS } from "../../base/schema/limits.ts";
import { SEEN_SEQUENCE, UNSEEN } from "../../base/schema/unseen.ts";

type Fields = Readonly<Record<string, unknown>>;

const HIDDEN = new RegExp(String.raw`(${SEEN_SEQUENCE})|[${UNSEEN}]|\p{Surrogate}`, "gv");

export function result(fields: Fields, more: readonly ContentBlock[] = []): CallToolResult {
  return { content: [{ type: "text", text: JSON.stringify(fields, null, 1) }, ...more], structuredContent: { ...fields } };
}

/** Which tool helps after an error; what is not here has a remedy that says enough. */
const NEXT: Partial<Record<ErrorCode, string>> = {
  not_found: "Call list to see what there is.",
  file_not_found: "Call get_sandbox_status to see which files there are.",
  not_running: "Call get_sandbox_status to see how it stands.",
  busy: "Call wait, then try again.",
  illegal_transition: "Call get_sandbox_status to see how it stands.",
  no_capacity: "Call list, then cleanup_sandbox for what is not needed any more.",
  no_project: "Call download_files: there is no project to bring it into.",
  agent_missing: "Tell the person to run the command above in a terminal, then call execute_task again; or name another agent.",
  agent_login: "Tell the person to run the command above in a terminal, then call execute_task again; or name another agent.",
  desktop_missing: "Tell the person what to install, then call use_desktop again.",
  desktop_failed: "Call use_desktop with close: true, then again.",
  desktop_taken: "Call screenshot to see what the person does meanwhile.",
  notebook_missing: "Tell the person what to install, then call python again; run works without it.",
  notebook_failed: "Call python again; run works without Jupyter.",
  project_not_found: "Call list to see which projects there are.",
  server_unreachable: "Call the same tool again.",
  internal: "Call the same tool again; if it fails again, tell the person to run `viv doctor`.",
};

/** An answer, not a failure of the protocol: the model reads what to do now. */
export function failure(error: unknown): CallToolResult {
  const known = VivError.from(error);
  const { code, message, remedy } = known.toBody().error;
  const next = NEXT[code];
  const text = [message, remedy, next].filter((part) => part !== undefined && part !== "").join(" ");
  return {
    isError: true,
    content: [{ type: "text", text: clean(text) }],
    structuredContent: { error: { code, message, next: next ?? remedy } },
  };
}

/** Text from a sandbox: what moves cursors or hides is shown as an escape, lines and tabs stay. */
export function clean(text: string): string {
  return text.replace(HIDDEN, (character, seen?: string) => {
    if (seen !== undefined || character === "\n" || character === "\t") return character;
    return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
  });
}

/** The same in one line: a name can't make lines of its own where a person is asked. */
export function cleanLine(text: string): string {
  return clean(text).replaceAll("\n", "\\n").replaceAll("\t", "\\t");
}

/** The end of a long text, from the start of a line. */
export function lastPart(text: string, most: number = LIMITS.toolTextCharacters): string {
  if (text.length <= most) return text;
  const part = text.slice(-most);
  return `[...]${part.slice(Math.max(0, part.indexOf("\n")))}`;
}
