import { describe, expect, test } from "vitest";
import { codex } from "../../src/work/agents/adapters/codex.ts";
import { parse } from "smol-toml";
import { replay, shown, startOf, TASK, transcript } from "../support/transcript.ts";

const told = (scenario: string): string[] =>
  shown(replay(codex, transcript("codex", scenario)).heard).filter((line) => !/^(?:raw|usage|error)$/.test(line));
const gateway = { openai: { url: "http://127.0.0.1:4097/model/openai", key: "placeholder" } };

describe("Codex", () => {
  test("a run is told from its start to its end, and asks before it acts", () => {
    expect(told("run")).toEqual([
      "started",
      "turn began",
      "delivered msg_task",
      "thinking let me think",
      "message I will look.",
      "tool_call shell command",
      'request {"kind":"tool","tool":"bash","argument":"echo hello && cat a.txt"}',
      "tool_result shell ok hello\nAAA",
      "tool_call apply_patch edit",
      'request {"kind":"tool","tool":"write","argument":"/project/b.txt"}',
      "tool_result apply_patch ok",
      "message done",
      "turn ended",
      "finished done",
      "turnEnded",
    ]);
  });

  test("what is denied fails, and it goes on", () => {
    expect(told("denied")).toContain("tool_result shell failed It was not allowed.");
    expect(told("denied").at(-1)).toBe("turnEnded");
  });

  test("a message during a command is delivered behind it, in the same turn", () => {
    expect(told("message").slice(-6)).toEqual([
      "tool_result shell ok slept",
      "delivered msg_mid",
      "message done",
      "turn ended",
      "finished done",
      "turnEnded",
    ]);
  });

  test("an interrupted turn ends without its command's result, and the next message begins another", () => {
    expect(told("interrupt").slice(-9)).toEqual([
      "tool_result shell failed Its turn ended before it did.",
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

  test("a rate limit is told as a wait that ends", () => {
    expect(told("rate-limited").filter((line) => /^(?:waiting|resumed|turnEnded)/.test(line))).toEqual([
      "waiting rate_limit",
      "waiting rate_limit",
      "resumed rate_limit",
      "turnEnded",
    ]);
  });

  test("a model that refuses ends it with the model's words", () => {
    const { heard } = replay(codex, transcript("codex", "refused"));
    expect(heard.at(-1)).toEqual({ over: "failed", reason: expect.stringContaining("scripted 400") as string });
  });

  test("tools of the gateway need no question", () => {
    expect(told("gateway-tool")).toContain("tool_result vivarium.create_task ok created");
    expect(told("gateway-tool").some((line) => line.startsWith("request"))).toBe(false);
  });

  test("one that was killed goes on with its conversation, and begins a new one where that is lost", () => {
    expect(told("resumed")).toContain("message gone on");
    const lost = replay(codex, transcript("codex", "lost-conversation")).heard;
    expect(lost).toContainEqual({ event: { type: "error", passing: true, text: expect.stringContaining("begins a new one") as string } });
    expect(told("lost-conversation").at(-1)).toBe("turnEnded");
  });

  test("a turn that ends while a message is under way has not ended for good", () => {
    const entries = transcript("codex", "message");
    const taken = entries.findIndex((entry) => "out" in entry && entry.out.startsWith('{"id":"message msg_mid"'));
    const end = entries.find((entry) => "out" in entry && entry.out.includes('"turn/completed"'));
    // The end of the turn comes before the answer to the message.
    const { heard, state } = replay(codex, [...entries.slice(0, taken), ...(end === undefined ? [] : [end])]);
    expect(shown(heard)).not.toContain("turnEnded");
    expect(shown(codex.session(startOf(), state).line('{"id":"message msg_mid","error":{"code":-32600,"message":"no"}}'))).toEqual([
      "refused msg_mid",
      "turnEnded",
    ]);
  });

  test("a message that was not written is told as lost once a probe is answered, one written since then is not", () => {
    const entries = transcript("codex", "run");
    const until = entries.findIndex((entry) => "message" in entry);
    const before = codex.session(startOf(), replay(codex, entries.slice(0, until)).state);
    before.message(TASK.id, TASK.text);
    const session = codex.session(startOf(), before.state);
    expect(session.probe()).toContain("thread/read");
    session.message("msg_2", "more");
    expect(session.line('{"id":"probe","result":{}}')).toEqual([{ lost: TASK.id }]);
    expect(session.line('{"id":"probe","result":{}}')).toEqual([]);
  });

  test("an interrupt before the turn has begun stops it when it begins", () => {
    const entries = transcript("codex", "run");
    const began = entries.findIndex((entry) => "out" in entry && entry.out.includes('"turn/started"'));
    const session = codex.session(startOf(), replay(codex, entries.slice(0, began)).state);
    expect(session.interrupt()).toBe("");
    const [line] = entries.slice(began, began + 1).flatMap((entry) => ("out" in entry ? [entry.out] : []));
    expect(JSON.stringify(session.line(line ?? ""))).toContain("turn/interrupt");
  });

  test("its configuration lets the project change nothing, and holds no key", () => {
    const { files, env, command } = codex.launch(startOf({ project: '/a "b"\\c', models: gateway, program: "/bin/codex" }));
    expect(parse(files[0]?.content ?? "")).toMatchObject({
      model: "demo",
      model_provider: "vivarium",
      web_search: "disabled",
      projects: { '/a "b"\\c': { trust_level: "untrusted" } },
      model_providers: { vivarium: { base_url: gateway.openai.url, wire_api: "responses", env_key: "VIV_CODEX_KEY" } },
      mcp_servers: { vivarium: { url: "http://127.0.0.1:4097/mcp" } },
    });
    expect(env).toEqual({ CODEX_HOME: "/agent/codex", VIV_CODEX_KEY: "placeholder" });
    expect(command).toEqual(["/bin/codex", "app-server"]);
  });

  const asked = (command: string, cwd = "/project"): unknown => {
    const session = codex.session(startOf());
    const params = { itemId: "c", command, cwd };
    return session.line(JSON.stringify({ id: 7, method: "item/commandExecution/requestApproval", params }));
  };
  const bash = (argument: string): unknown => [{ request: "0 7", action: { kind: "tool", tool: "bash", argument }, call: "c" }];

  test.each([
    ["/bin/bash -lc ls", "ls"],
    ["/bin/bash -lc 'rm -rf x && ls'", "rm -rf x && ls"],
    ["/usr/bin/zsh -lc \"echo 'a b'\"", "echo 'a b'"],
    ['/bin/bash -lc "echo \\$HOME \\"x\\""', 'echo $HOME "x"'],
    // Not one word: it stays as it is.
    ["/bin/bash -lc 'a' 'b'", "/bin/bash -lc 'a' 'b'"],
    ['/bin/bash -lc "$(rm x)"', '/bin/bash -lc "$(rm x)"'],
    ["python3 x.py", "python3 x.py"],
  ])("of %s the policy judges the line itself", (command, line) => {
    expect(asked(command)).toEqual(bash(line));
  });

  test("a command elsewhere is judged as one that goes there", () => {
    expect(asked("/bin/bash -lc ls", "/etc/my dir")).toEqual(bash("cd '/etc/my dir' && ls"));
  });

  test("a patch is allowed once every path is, and denied with the first that is not", () => {
    const changes = [
      { path: "/project/a", kind: { type: "update", move_path: "/project/b" }, diff: "" },
      { path: "/project/c", kind: { type: "delete" }, diff: "" },
    ];
    const session = codex.session(startOf());
    session.line(JSON.stringify({ method: "item/started", params: { item: { type: "fileChange", id: "p", changes } } }));
    const asks = session.line('{"id":"q","method":"item/fileChange/requestApproval","params":{"itemId":"p"}}');
    expect(asks.map((each) => ("request" in each ? [each.request, each.action] : []))).toEqual([
      ['0 "q"', { kind: "tool", tool: "edit", argument: "/project/a" }],
      ['1 "q"', { kind: "tool", tool: "write", argument: "/project/b" }],
      ['2 "q"', { kind: "tool", tool: "edit", argument: "/project/c" }],
      ['3 "q"', { kind: "path", path: "/project/c", access: "delete" }],
    ]);
    const another = codex.session(startOf(), session.state);
    expect(["0", "1", "2"].map((index) => session.answer(`${index} "q"`, true, ""))).toEqual(["", "", ""]);
    expect(session.answer('3 "q"', true, "")).toBe('{"id":"q","result":{"decision":"accept"}}\n');
    expect(another.answer('2 "q"', false, "")).toBe('{"id":"q","result":{"decision":"decline"}}\n');
    expect(another.answer('3 "q"', true, "")).toBe("");
  });

  test("what it asks beside that gets an answer at once, and nothing more than now", () => {
    const answer = (method: string): unknown => codex.session(startOf()).line(JSON.stringify({ id: 1, method, params: {} }));
    expect(answer("item/permissions/requestApproval")).toEqual([{ write: '{"id":1,"result":{"permissions":{},"scope":"turn"}}\n' }]);
    expect(JSON.stringify(answer("mcpServer/elicitation/request"))).toContain("decline");
    expect(JSON.stringify(answer("new/thing"))).toContain("-32601");
  });

  test("the task has before it what a restarted agent must know, other messages have not", () => {
    const { state } = replay(codex, transcript("codex", "run").slice(0, 6));
    const session = codex.session(startOf({ context: "You did this before." }), state);
    expect(session.message(TASK.id, "do it")).toContain(String.raw`"You did this before.\n\ndo it"`);
    expect(session.message("msg_2", "and that")).toContain('"text":"and that"');
  });
});
