import { describe, expect, test } from "vitest";
import { pi } from "../../src/work/agents/adapters/pi.ts";
import { replay, shown, startOf, transcript } from "../support/transcript.ts";

const gateway = { anthropic: { url: "http://127.0.0.1:4097/model/anthropic", key: "placeholder" } };

/** Both are in use: the older does not say by itself that it has ended for good. */
describe.each(["pi-0.73", "pi-0.87"])("%s", (version) => {
  const told = (scenario: string): string[] =>
    shown(replay(pi, transcript(version, scenario)).heard).filter((line) => !/^(?:raw|usage)$/.test(line));

  test("a run is told from its start to its end, and asks before it acts", () => {
    expect(told("run").map((line) => line.replace(/ wrote .*/s, " wrote"))).toEqual([
      "started",
      "turn began",
      "delivered msg_task",
      "thinking let me think",
      "message I will look.",
      "tool_call bash command",
      'request {"kind":"tool","tool":"bash","argument":"echo hello && cat a.txt"}',
      "tool_result bash ok hello\nAAA",
      "tool_call write edit",
      'request {"kind":"tool","tool":"write","argument":"b.txt"}',
      "tool_result write ok Successfully wrote",
      "message done",
      "turn ended",
      "finished done",
      "turnEnded",
    ]);
  });

  test("what is denied fails with the reason, and it goes on", () => {
    expect(told("denied")).toContain("tool_result bash failed The policy does not allow it.");
    expect(told("denied").at(-1)).toBe("turnEnded");
  });

  test("a message during a command is delivered behind it, in the same turn", () => {
    expect(told("message").slice(-6)).toEqual([
      "tool_result bash ok slept",
      "delivered msg_mid",
      "message done",
      "turn ended",
      "finished done",
      "turnEnded",
    ]);
  });

  test("an interrupted turn is no failure, and the next message begins another", () => {
    expect(told("interrupt").slice(-9)).toEqual([
      "tool_result bash failed Command aborted",
      "turn ended",
      "turnEnded",
      "turn began",
      "delivered msg_later",
      "message done",
      "turn ended",
      "finished done",
      "turnEnded",
    ]);
  });

  test("a model that refuses ends it with the model's words", () => {
    const { heard } = replay(pi, transcript(version, "refused"));
    expect(heard.find((each) => "over" in each)).toEqual({ over: "failed", reason: expect.stringContaining("scripted 400") as string });
  });

  test("one that was killed goes on with its conversation, and ends with a reason where that is lost", () => {
    expect(told("resumed")).toContain("message gone on");
    const { heard } = replay(pi, transcript(version, "lost-conversation"));
    expect(heard.at(-1)).toEqual({ over: "failed", reason: expect.stringMatching(/^pi ended with 1: No session found/) as string });
  });

  test("it gets no task before the extension that asks is there", () => {
    const entries = transcript(version, "run").filter((entry) => !("out" in entry && entry.out.includes('"statusKey":"vivarium"')));
    const until = entries.findIndex((entry) => "message" in entry);
    expect(pi.session(startOf(), replay(pi, entries.slice(0, until)).state).message("msg_1", "x")).toBeUndefined();
  });
});

describe("pi", () => {
  test("a rate limit that it waits for is told with its end", () => {
    const { heard } = replay(pi, transcript("pi-0.87", "rate-limited"));
    const [waiting] = heard.flatMap((each) => ("event" in each && each.event.type === "waiting" ? [each.event] : []));
    expect(waiting).toMatchObject({ for: "rate_limit", until: expect.stringMatching(/^\d{4}-.*Z$/) as string });
    expect(shown(heard)).toContain("resumed rate_limit");
  });

  test("a message that was not written is told as lost once both probes are answered, one that pi took is not", () => {
    const entries = transcript("pi-0.73", "run");
    const until = entries.findIndex((entry) => "message" in entry);
    const before = pi.session(startOf(), replay(pi, entries.slice(0, until)).state);
    for (const id of ["msg_1", "msg_2"]) before.message(id, id);
    const session = pi.session(startOf(), before.state);
    session.probe();
    expect(JSON.stringify(session.line('{"type":"response","id":"probe","success":true}'))).toContain("probe again");
    session.line('{"type":"response","id":"message msg_2","command":"prompt","success":true}');
    expect(session.line('{"type":"response","id":"probe again","success":true}')).toEqual([{ lost: "msg_1" }]);
  });

  test("a tool of the gateway is called without a question, because the gateway judges it", () => {
    const { heard } = replay(pi, transcript("pi-0.73", "gateway-tool"));
    expect(shown(heard)).toContain("tool_result vivarium_create_task ok created");
    expect(heard.filter((each) => "request" in each || "breach" in each)).toEqual([]);
  });

  test("a line may hold separators of lines that are none", () => {
    const words = "a\u2028b\u2029c";
    const message = { role: "assistant", content: [{ type: "text", text: words }], stopReason: "stop" };
    expect(pi.session(startOf()).line(JSON.stringify({ type: "message_end", message }))).toEqual([
      { event: { type: "message", from: "agent", text: words, message: null } },
    ]);
  });

  test("dialogs of others are cancelled", () => {
    const line = pi.session(startOf()).line('{"type":"extension_ui_request","id":"1","method":"confirm","title":"Sure?"}');
    expect(line).toEqual([{ write: '{"type":"extension_ui_response","id":"1","cancelled":true}\n' }]);
  });

  test("it speaks to the first model API that is there, without extensions of the project", () => {
    const { command, env, files } = pi.launch(startOf({ models: gateway, conversation: "abc" }));
    expect(command.join(" ")).toContain("--no-extensions --extension /agent/pi/vivarium.js");
    expect(command.join(" ")).toContain("--provider anthropic --model demo --session abc");
    expect(env["PI_CODING_AGENT_DIR"]).toBe("/agent/pi");
    const models = files.find(({ path }) => path === "pi/models.json");
    expect(JSON.parse(models?.content ?? "")).toEqual({
      providers: { anthropic: { baseUrl: gateway.anthropic.url, apiKey: "placeholder" } },
    });
  });
});
