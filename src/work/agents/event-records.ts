/** What of an agent's events belongs to its conversation, as another agent or a person reads it later. */
import type { RunEvent, RunEventBody } from "../../base/schema/run.ts";
import type { SaidRecord } from "../conversations/conversations.ts";

/** What was thought, counted and waited for is told by the events alone; the task is there already. */
export function recordsOf(task: string, events: readonly RunEvent[]): SaidRecord[] {
  return events.flatMap((event) => {
    const said = recordOf(event);
    return said === undefined || (said.role === "person" && said.text === task) ? [] : [{ ...said, at: event.at }];
  });
}

function recordOf(event: RunEventBody): SaidRecord | undefined {
  switch (event.type) {
    case "started":
      return system(`${event.agent} started${event.model === null ? "" : ` with ${event.model}`}.`);
    case "message":
      return { role: event.from, kind: "text", text: event.text };
    case "tool_call":
      return { role: "agent", kind: "tool-call", tool: event.tool, callId: event.call, text: JSON.stringify(event.input) ?? "null" };
    case "tool_result":
      return { role: "tool", kind: "tool-result", tool: event.tool, callId: event.call, text: resultOf(event) };
    case "file_change":
      return system(`Files changed: ${event.paths.join(", ")}${event.more > 0 ? ` and ${event.more} more` : ""}.`);
    case "guardian":
      return { role: "guardian", kind: "text", text: `${event.step} (${event.detector}): ${event.evidence}` };
    case "raw":
      return { role: "tool", kind: "text", text: event.text };
    case "gap":
      return system(`${event.bytes} bytes of the agent's output were lost while no server listened.`);
    case "error":
      return system(`Error: ${event.text}`);
    default:
      return undefined;
  }
}

function system(text: string): SaidRecord {
  return { role: "system", kind: "text", text };
}

/** Not every output of a tool that failed says so. */
function resultOf({ ok, output }: { readonly ok: boolean; readonly output: string }): string {
  return ok ? output : `error: ${output}`;
}
