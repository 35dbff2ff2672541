import { describe, expect, test } from "vitest";
import { Adapters } from "../../src/work/agents/adapters.ts";
import { gemini } from "../../src/work/agents/adapters/gemini.ts";
import type { Heard, Session } from "../../src/work/agents/adapter.ts";
import { replay, shown, startOf, transcript } from "../support/transcript.ts";

const told = (scenario: string): string[] =>
  shown(replay(gemini, transcript("gemini", scenario)).heard).filter((line) => !/^(?:raw|usage)$/.test(line));

describe("Gemini CLI", () => {
  test("a run is told from its start to its end, and asks before it acts", () => {
    expect(told("run").map((line) => line.replace(/\s+/g, " "))).toEqual([
      "started",
      "delivered msg_task",
      "turn began",
      "thinking **** let me think",
      "message I will look.",
      "tool_call execute command",
      'request {"kind":"tool","tool":"bash","argument":"echo hello && cat a.txt"}',
      "tool_result execute ok",
      "tool_call edit edit",
      'request {"kind":"tool","tool":"edit","argument":"/project/b.txt"}',
      "tool_result edit ok [diff /project/b.txt]",
      "message done",
      "turn ended",
      "finished done",
      "turnEnded",
    ]);
  });

  test("what is denied has a result, though it says nothing more of it", () => {
    expect(told("denied")).toContain("tool_result execute failed It was not allowed.");
  });

  test("a message waits for the end of the turn", () => {
    expect(told("message").slice(-10)).toEqual([
      "message done",
      "turn ended",
      "finished done",
      "turnEnded",
      "delivered msg_mid",
      "turn began",
      "message done again",
      "turn ended",
      "finished done again",
      "turnEnded",
    ]);
  });

  test("an interrupted turn is no failure, and the next message begins another", () => {
    expect(told("interrupt")).toEqual(expect.arrayContaining(["delivered msg_later", "finished done"]));
    expect(told("interrupt").some((line) => line.startsWith("over"))).toBe(false);
  });

  test("tools of the gateway need no question", () => {
    expect(told("gateway-tool")).toContain("tool_result other ok created");
    expect(told("gateway-tool").some((line) => line.startsWith("request"))).toBe(false);
  });

  test("the history of a conversation that goes on is not told again, and one that is lost begins anew", () => {
    expect(told("resumed").filter((line) => line.startsWith("message"))).toEqual(["message gone on"]);
    expect(told("lost-conversation").slice(0, 2)).toEqual(["error", "started"]);
  });

  test("its home is outside the project and holds no key", () => {
    const models = { gemini: { url: "http://127.0.0.1:4097/model/gemini", key: "placeholder" } };
    const { env, files } = gemini.launch(startOf({ models }));
    expect(env).toMatchObject({
      GEMINI_CLI_HOME: "/agent/gemini",
      GOOGLE_GEMINI_BASE_URL: models.gemini.url,
      GEMINI_API_KEY: "placeholder",
    });
    expect(JSON.stringify(files)).not.toContain("placeholder");
  });
});

const own = new Adapters({ mine: { protocol: "acp", command: ["my-agent", "--stdio"], env: { A: "1" } } }).of("mine");
if (own === undefined) throw new Error("there is no agent mine");
const mine = own;

/** One with an open conversation and a prompt. */
function prompted(): Session {
  const session = mine.session(startOf());
  session.line('{"jsonrpc":"2.0","id":"initialize","result":{"agentCapabilities":{"mcpCapabilities":{"http":true}}}}');
  session.line('{"jsonrpc":"2.0","id":"session","result":{"sessionId":"s"}}');
  session.message("msg_1", "go");
  return session;
}

const OPTIONS = [
  { optionId: "ja", kind: "allow_once" },
  { optionId: "nein", kind: "reject_once" },
];

function ask(session: Session, toolCall: object, options: readonly object[] = OPTIONS): readonly Heard[] {
  const params = { sessionId: "s", toolCall: { toolCallId: "c", ...toolCall }, options };
  return session
    .line(JSON.stringify({ jsonrpc: "2.0", id: 5, method: "session/request_permission", params }))
    .filter((each) => "request" in each || "write" in each);
}

const actions = (heard: readonly Heard[]): unknown[] => heard.flatMap((each) => ("request" in each ? [each.action] : []));

describe("any agent that speaks ACP", () => {
  test("is started as the config says", () => {
    expect(mine.launch(startOf({ program: "/opt/my-agent" }))).toEqual({
      command: ["/opt/my-agent", "--stdio"],
      env: { A: "1" },
      files: [],
      keeps: "all",
      input: true,
    });
    expect(mine.program).toBe("my-agent");
  });

  test.each([
    [{ kind: "execute", title: "Run", rawInput: { command: "ls -l" } }, [{ kind: "tool", tool: "bash", argument: "ls -l" }]],
    [{ kind: "execute", rawInput: { command: ["rm", "a b"] } }, [{ kind: "tool", tool: "bash", argument: "rm 'a b'" }]],
    [{ kind: "execute", title: "make" }, [{ kind: "tool", tool: "bash", argument: "make" }]],
    [{ kind: "execute" }, [{ kind: "tool", tool: "bash" }]],
    [
      { kind: "edit", locations: [{ path: "/a" }], content: [{ type: "diff", path: "/b" }] },
      [
        { kind: "tool", tool: "edit", argument: "/b" },
        { kind: "tool", tool: "edit", argument: "/a" },
      ],
    ],
    [
      { kind: "delete", rawInput: { path: "/a" } },
      [
        { kind: "tool", tool: "edit", argument: "/a" },
        { kind: "path", path: "/a", access: "delete" },
      ],
    ],
    [{ kind: "fetch", rawInput: { url: "https://x" } }, [{ kind: "tool", tool: "webfetch", argument: "https://x" }]],
    [{ kind: "other", title: "Dance" }, [{ kind: "tool", tool: "Dance" }]],
    [{}, [{ kind: "tool", tool: "unknown" }]],
  ])("the policy is asked about what %j does", (call, expected) => {
    expect(actions(ask(prompted(), call))).toEqual(expected);
  });

  test("a command of any length is judged whole", () => {
    const command = `${"a".repeat(2000)}; rm -rf /`;
    expect(actions(ask(prompted(), { kind: "execute", title: command }))).toEqual([{ kind: "tool", tool: "bash", argument: command }]);
  });

  test("an answer is chosen by the kind of the options", () => {
    const session = prompted();
    ask(session, { kind: "execute", title: "make" });
    expect(JSON.parse(session.answer("0 5", false, ""))).toMatchObject({
      id: 5,
      result: { outcome: { outcome: "selected", optionId: "nein" } },
    });
    ask(session, { kind: "execute", title: "make" }, [{ optionId: "nie", kind: "reject_always" }]);
    expect(JSON.parse(session.answer("0 5", true, ""))).toMatchObject({ result: { outcome: { outcome: "cancelled" } } });
  });

  test("an interrupt answers what was asked as cancelled", () => {
    const session = prompted();
    ask(session, { kind: "execute", title: "make" });
    const [cancel, answer] = (session.interrupt() ?? "").trim().split("\n");
    expect(cancel).toContain("session/cancel");
    expect(JSON.parse(answer ?? "")).toMatchObject({ id: 5, result: { outcome: { outcome: "cancelled" } } });
    expect(session.pending()).toEqual([]);
    expect(session.answer("0 5", true, "")).toBe("");
  });

  test("what it says in pieces is one message", () => {
    const session = prompted();
    const piece = (text: string): readonly Heard[] =>
      session.line(
        JSON.stringify({
          jsonrpc: "2.0",
          method: "session/update",
          params: { sessionId: "s", update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text } } },
        }),
      );
    expect(shown(["a", "b", "c"].flatMap(piece))).toEqual(["delivered msg_1", "turn began"]);
    expect(shown(session.line('{"jsonrpc":"2.0","id":"message msg_1","result":{"stopReason":"end_turn"}}'))).toEqual([
      "message abc",
      "turn ended",
      "finished abc",
      "turnEnded",
    ]);
  });

  test("files and terminals of the server are not for it", () => {
    expect(
      JSON.stringify(prompted().line('{"jsonrpc":"2.0","id":1,"method":"fs/read_text_file","params":{"path":"/etc/shadow"}}')),
    ).toContain("-32601");
  });

  test("another conversation of the same process is not heard, and gets no permission", () => {
    const session = prompted();
    const update = { sessionUpdate: "agent_message_chunk", content: { type: "text", text: "x" } };
    expect(session.line(JSON.stringify({ jsonrpc: "2.0", method: "session/update", params: { sessionId: "t", update } }))).toEqual([]);
    expect(
      JSON.stringify(session.line('{"jsonrpc":"2.0","id":9,"method":"session/request_permission","params":{"sessionId":"t"}}')),
    ).toContain("cancelled");
  });

  test.each(["max_tokens", "refusal", "max_turn_requests", ""])("a turn that stops by %j has failed", (stopReason) => {
    expect(shown(prompted().line(JSON.stringify({ jsonrpc: "2.0", id: "message msg_1", result: { stopReason } }))).at(-1)).toBe(
      "over failed",
    );
  });
});
