import { expect, test } from "vitest";
import { RunEvent } from "../../src/base/schema/run.ts";
import { claude } from "../../src/work/agents/adapters/claude.ts";
import { startOf } from "../support/transcript.ts";

test.each(["constructor", "__proto__", "toString"])("a tool or a call that Claude Code names %s is told like any other", (name) => {
  const session = claude.session(startOf());
  const lines = [
    { type: "user", message: { content: [{ type: "tool_result", tool_use_id: name, is_error: true, content: "x" }] } },
    { type: "assistant", parent_tool_use_id: null, message: { content: [{ type: "tool_use", id: name, name, input: {} }] } },
    { type: "user", uuid: name, isReplay: true, message: { content: [] } },
    { type: "command_lifecycle", command_uuid: name, state: "completed" },
  ];
  const heard = lines.flatMap((line) => session.line(JSON.stringify(line)));
  expect(heard).toHaveLength(2);
  for (const each of heard)
    expect(RunEvent.safeParse({ ...("event" in each ? each.event : {}), sequence: 1, at: "2030-01-01T00:00:00.000Z" }).error).toBe(
      undefined,
    );
});

test("calls and questions that Claude Code leaves open do not grow without end", () => {
  const session = claude.session(startOf());
  for (let at = 0; at < 1_000; at += 1) {
    const call = { content: [{ type: "tool_use", id: `call-${at}`, name: "Bash", input: {} }] };
    session.line(JSON.stringify({ type: "assistant", parent_tool_use_id: null, message: call }));
    const request = { subtype: "hook_callback", input: { tool_name: "Bash", tool_input: { command: "ls" }, tool_use_id: `call-${at}` } };
    session.line(JSON.stringify({ type: "control_request", request_id: `request-${at}`, request }));
  }
  expect(JSON.stringify(session.state).length).toBeLessThan(50_000);
});
