/** What a hostile program that speaks Claude Code's protocol can make the server keep. */
import { describe, expect, test } from "vitest";
import { LIMITS } from "../../src/base/schema/limits.ts";
import { claude } from "../../src/work/agents/adapters/claude.ts";
import type { Heard } from "../../src/work/agents/adapter.ts";
import { startOf } from "../support/transcript.ts";

const asks = (id: string, command: string): string =>
  JSON.stringify({
    type: "control_request",
    request_id: id,
    request: { subtype: "hook_callback", callback_id: "policy", input: { tool_name: "Bash", tool_input: { command }, tool_use_id: id } },
  });
const isDenied = (heard: readonly Heard[]): boolean => heard.some((each) => "write" in each && each.write.includes('"deny"'));

describe("questions of a program", () => {
  test("are put to the policy, and denied unread where too many wait, one is too long, or all together are", () => {
    const session = claude.session(startOf());
    expect(session.line(asks("one", "true"))).toMatchObject([{ request: "one", action: { tool: "bash", argument: "true" } }]);
    expect(isDenied(session.line(asks("long", "x".repeat(100_000))))).toBe(true);
    const answers = Array.from({ length: 500 }, (_, index) => session.line(asks(`q${index}`, "y".repeat(30_000))));
    expect(answers.filter((heard) => !isDenied(heard)).length).toBeLessThan(10);
    expect(JSON.stringify(session.state).length).toBeLessThan(LIMITS.runSessionCharacters);
    for (let index = 0; index < 1_000; index += 1) session.line(asks(`short${index}`, "true"));
    expect(JSON.stringify(session.state).length).toBeLessThan(LIMITS.runSessionCharacters);
    // Those that wait are still there for the next server.
    expect(session.pending()[0]).toMatchObject({ request: "one" });
  });

  test("with an id of a megabyte are not answered, and change nothing", () => {
    const session = claude.session(startOf());
    const before = JSON.stringify(session.state);
    expect(session.line(asks("i".repeat(1_000_000), "true"))).toMatchObject([{ event: { type: "raw" } }]);
    expect(JSON.stringify(session.state)).toBe(before);
  });
});
