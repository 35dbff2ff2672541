/** What an agent does without asking is told, in conversations with the real programs from which its questions were taken out. */
import { describe, expect, test } from "vitest";
import type { Adapter, Heard } from "../../src/work/agents/adapter.ts";
import { claude } from "../../src/work/agents/adapters/claude.ts";
import { codex } from "../../src/work/agents/adapters/codex.ts";
import { gemini } from "../../src/work/agents/adapters/gemini.ts";
import { opencode } from "../../src/work/agents/adapters/opencode.ts";
import { pi } from "../../src/work/agents/adapters/pi.ts";
import { replay, startOf, transcript, transcripts } from "../support/transcript.ts";

interface Case {
  readonly recorded: string;
  readonly adapter: Adapter;
  /** In a line that asks. */
  readonly asks: RegExp;
  readonly told: readonly string[];
}

const CASES: readonly Case[] = [
  {
    recorded: "codex",
    adapter: codex,
    asks: /requestApproval/,
    told: ["unasked bash echo hello && cat a.txt", "unasked write /project/b.txt"],
  },
  {
    recorded: "gemini",
    adapter: gemini,
    asks: /request_permission/,
    told: ["unasked bash echo hello && cat a.txt", "unasked edit /project/b.txt"],
  },
  { recorded: "pi-0.73", adapter: pi, asks: /"title":"vivarium"/, told: ["breach bash", "breach write"] },
  { recorded: "pi-0.87", adapter: pi, asks: /"title":"vivarium"/, told: ["breach bash", "breach write"] },
  { recorded: "opencode", adapter: opencode, asks: /_vivarium\/call/, told: ["breach execute", "breach edit"] },
];

function tellings(heard: readonly Heard[]): string[] {
  return heard.flatMap((each) => {
    if ("breach" in each) return [`breach ${/used (\S+) without asking/.exec(each.breach)?.[1]}`];
    if (!("unasked" in each) || each.unasked.kind !== "tool") return [];
    return [`unasked ${each.unasked.tool} ${each.unasked.argument ?? "unknown"}`];
  });
}

describe.each(CASES)("$recorded", ({ recorded, adapter, asks, told }) => {
  test("POL-1: what it does without asking is told", () => {
    const entries = transcript(recorded, "run").filter((entry) => !("answer" in entry) && !("out" in entry && asks.test(entry.out)));
    expect(tellings(replay(adapter, entries).heard)).toEqual(told);
  });

  test.each(transcripts(recorded))("nothing of the kind is told of %s, in which it asks", (scenario) => {
    expect(tellings(replay(adapter, transcript(recorded, scenario)).heard)).toEqual([]);
  });
});

describe("Claude Code", () => {
  const used = (id: string) => ({
    type: "assistant",
    parent_tool_use_id: null,
    message: { content: [{ type: "tool_use", id, name: "Bash", input: { command: "true" } }] },
  });
  const result = (id: string, content: string, failed: boolean) => ({
    type: "user",
    message: { content: [{ type: "tool_result", tool_use_id: id, content, is_error: failed }] },
  });

  test.each([
    { content: "fine", failed: false, told: ["breach Bash"] },
    { content: "Exit code 1\nno", failed: true, told: ["breach Bash"] },
    { content: "<tool_use_error>InputValidationError</tool_use_error>", failed: true, told: [] },
  ])("POL-1: of a call that its hook was not asked about, $content is told as $told", ({ content, failed, told }) => {
    const session = claude.session(startOf());
    const heard = [used("call_1"), result("call_1", content, failed)].flatMap((line) => session.line(JSON.stringify(line)));
    expect(tellings(heard)).toEqual(told);
  });

  test("POL-1: of a call that its hook was asked about, and may do, nothing is told", () => {
    const session = claude.session(startOf());
    const input = { tool_name: "Bash", tool_input: { command: "true" }, tool_use_id: "call_1" };
    const asked = { type: "control_request", request_id: "r", request: { subtype: "hook_callback", callback_id: "policy", input } };
    for (const line of [used("call_1"), asked]) session.line(JSON.stringify(line));
    session.answer("r", true, "fine");
    expect(tellings(session.line(JSON.stringify(result("call_1", "fine", false))))).toEqual([]);
  });
});
