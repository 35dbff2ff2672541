/** What is OpenCode's own: its configuration, messages during a turn, and the plugin that asks before it acts. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Heard, Session } from "../../src/work/agents/adapter.ts";
import { opencode } from "../../src/work/agents/adapters/opencode.ts";
import { replay, shown, startOf, transcript } from "../support/transcript.ts";

const GATEWAY = { openai: { url: "http://127.0.0.1:4097/model/openai", key: "placeholder" } };
const fileOf = (launch: ReturnType<typeof opencode.launch>, path: string): string =>
  launch.files.find((file) => file.path === path)?.content ?? "";
const line = (value: object): string => JSON.stringify({ jsonrpc: "2.0", ...value });
const told = (what: string, params: object = {}): string => line({ method: `_vivarium/${what}`, params });

describe("how OpenCode is started", () => {
  const launch = opencode.launch(startOf({ models: GATEWAY, policy: { text: "Be good.", lackedTools: ["write"], rules: {} } }));

  test("everything is denied until the plugin takes that back, but for what the role lacks", () => {
    expect(JSON.parse(fileOf(launch, "opencode.json"))).toMatchObject({
      permission: { "*": "deny" },
      plugin: ["file:///agent/vivarium.js"],
    });
    expect(JSON.parse(launch.env["VIVARIUM_PERMISSION"] ?? "")).toEqual({ "*": "allow", question: "deny", write: "deny" });
    expect(fileOf(launch, "vivarium.js")).toContain("tool.execute.before");
  });

  test("nothing of it lies in the project, and the project's settings do not count", () => {
    expect(launch.env["OPENCODE_DISABLE_PROJECT_CONFIG"]).toBe("1");
    const places = ["OPENCODE_CONFIG", "OPENCODE_DB", "XDG_CONFIG_HOME"].map((name) => launch.env[name]);
    for (const place of places) expect(place).toMatch(/^\/agent\//);
  });

  test.each([
    { models: GATEWAY, model: "gpt-5", id: "openai", chosen: "openai/gpt-5", baseURL: "http://127.0.0.1:4097/model/openai" },
    {
      models: { anthropic: { url: "http://a", key: "k" }, ...GATEWAY },
      model: "m",
      id: "anthropic",
      chosen: "anthropic/m",
      baseURL: "http://a/v1",
    },
    { models: { gemini: { url: "http://g", key: "k" } }, model: "m", id: "google", chosen: "google/m", baseURL: "http://g/v1beta" },
    {
      models: { local: { url: "http://l", key: "k" }, ...GATEWAY },
      model: "local/llama",
      id: "local",
      chosen: "local/llama",
      baseURL: "http://l",
    },
    { models: GATEWAY, model: null, id: "openai", chosen: undefined, baseURL: "http://127.0.0.1:4097/model/openai" },
  ])("model $model is asked at $baseURL", ({ models, model, id, chosen, baseURL }) => {
    const config = JSON.parse(fileOf(opencode.launch(startOf({ models, model })), "opencode.json")) as Record<string, unknown>;
    expect(config).toMatchObject({ provider: { [id]: { options: { baseURL } } }, enabled_providers: [id] });
    expect(config["model"]).toBe(chosen);
  });
});

/** One whose conversation is open. */
function opened(): Session {
  const session = opencode.session(startOf());
  session.begin();
  for (const heard of [told("ready"), line({ id: "initialize", result: {} }), line({ id: "session", result: { sessionId: "ses_1" } })])
    session.line(heard);
  return session;
}

describe("what OpenCode says", () => {
  test("a message during a turn is with the agent when its model has read it", () => {
    const { heard } = replay(opencode, transcript("opencode", "message"));
    const order = shown(heard);
    expect(order.indexOf("delivered msg_mid")).toBeGreaterThan(order.findIndex((each) => each.startsWith("tool_call")));
    expect(order.filter((each) => each === "turnEnded")).toHaveLength(1);
  });

  test("a turn that goes on for a message given during it has not ended", () => {
    const session = opened();
    session.message("msg_task", "do it");
    session.line(told("read", { sessionId: "ses_1", messages: 1 }));
    expect(session.message("msg_mid", "also this")).toContain('"steer msg_mid"');
    const first = session.line(line({ id: "message msg_task", result: { stopReason: "end_turn" } }));
    expect(first.some((each) => "turnEnded" in each)).toBe(false);
    expect(session.line(told("read", { sessionId: "ses_1", messages: 2 }))).toEqual([{ delivered: "msg_mid" }]);
    expect(session.message("msg_more", "and this")).toContain('"steer msg_more"');
    expect(session.line(line({ id: "steer msg_mid", result: { stopReason: "end_turn" } }))).toEqual([]);
    const last = session.line(line({ id: "steer msg_more", error: { code: 1, message: "too late" } }));
    expect(shown(last)).toEqual(["refused msg_more", "turn ended", "turnEnded"]);
  });

  test("without the plugin the run is over before it is given anything to do", () => {
    const session = opencode.session(startOf());
    session.begin();
    session.line(line({ id: "initialize", result: {} }));
    const heard: readonly Heard[] = session.line(line({ id: "session", result: { sessionId: "ses_1" } }));
    expect(heard.at(-1)).toMatchObject({ over: "failed", reason: expect.stringContaining("plugin") as string });
    expect(session.message("msg_task", "do it")).toBeUndefined();
  });

  test("what another conversation has read delivers nothing", () => {
    const session = opened();
    session.message("msg_task", "do it");
    session.message("msg_mid", "also this");
    expect(session.line(told("read", { sessionId: "ses_2", messages: 9 }))).toEqual([]);
  });
});

interface Hooks {
  readonly config: (config: object) => Promise<void>;
  readonly tool: Readonly<Record<string, { execute: (args: object, context: object) => Promise<string> }>>;
  readonly "tool.definition": (which: { toolID: string }, definition: { jsonSchema?: unknown }) => Promise<void>;
  readonly "tool.execute.before": (call: object, given: { args: object }) => Promise<void>;
}

describe("the plugin", () => {
  const asked: { path: string; body: Record<string, unknown> }[] = [];
  let server: Server;
  let hooks: Hooks;
  let verdicts: { status: number; verdict: string }[];

  beforeAll(async () => {
    const inputSchema = { type: "object", properties: { title: { type: "string" }, priority: { type: "string" } }, required: ["title"] };
    const answer = async (path: string, body: Record<string, unknown>): Promise<[number, object]> => {
      if (path.endsWith("/actions")) {
        const { status, verdict } = verdicts.shift() ?? { status: 200, verdict: "allow" };
        return [status, { verdict, reason: `It is ${verdict}.` }];
      }
      const result =
        body["method"] === "tools/list"
          ? { tools: [{ name: "create_task", description: "d", inputSchema }] }
          : { content: [{ text: "made" }] };
      return [200, { jsonrpc: "2.0", id: body["id"], result }];
    };
    server = createServer((request, response) => {
      void (json(request) as Promise<Record<string, unknown>>).then(async (body) => {
        asked.push({ path: request.url ?? "", body });
        const [status, reply] = await answer(request.url ?? "", body);
        response.writeHead(status).end(JSON.stringify(reply));
      });
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    process.env["VIVARIUM_GATEWAY"] = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const path = join(import.meta.dirname, "../../integrations/opencode/vivarium.js");
    const { Vivarium } = (await import(path)) as { Vivarium: (input: object) => Promise<Hooks> };
    hooks = await Vivarium({ directory: "/project" });
  });
  afterAll(() => {
    delete process.env["VIVARIUM_GATEWAY"];
    server.close();
  });
  beforeEach(() => {
    asked.length = 0;
    verdicts = [];
  });

  const before = (tool: string, args: object): Promise<void> => hooks["tool.execute.before"]({ tool, callID: "1" }, { args });
  const actions = (): unknown[] => asked.map(({ body }) => body["action"]);

  test.each([
    ["bash", { command: "npm test" }, [{ kind: "tool", tool: "bash", argument: "npm test" }]],
    ["write", { filePath: "/project/a" }, [{ kind: "tool", tool: "write", argument: "/project/a" }]],
    ["grep", { pattern: "x" }, [{ kind: "tool", tool: "grep", argument: "/project" }]],
    ["webfetch", { url: "https://example.org" }, [{ kind: "tool", tool: "webfetch", argument: "https://example.org" }]],
    ["odd_tool", { a: 1 }, [{ kind: "tool", tool: "odd_tool" }]],
    [
      "apply_patch",
      { patchText: "*** Begin Patch\n*** Update File: a\n*** Move to: b\n*** Delete File: c\n*** End Patch" },
      [
        { kind: "tool", tool: "edit", argument: "a" },
        { kind: "tool", tool: "edit", argument: "b" },
        { kind: "tool", tool: "edit", argument: "c" },
        { kind: "path", path: "c", access: "delete" },
      ],
    ],
  ])("asks about %s %j", async (tool, args, expected) => {
    await before(tool, args);
    expect(actions()).toEqual(expected);
  });

  test("a denial, and anything else that is no permission, stops the call", async () => {
    for (const [status, verdict] of [
      [200, "deny"],
      [200, "odd"],
      [500, "allow"],
      [404, "none"],
    ] as const) {
      verdicts = [{ status, verdict }];
      await expect(before("bash", { command: "x" }), `${status} ${verdict}`).rejects.toThrow(`It is ${verdict}.`);
    }
  });

  test("a question is asked again until a person has answered", async () => {
    verdicts = [
      { status: 202, verdict: "ask" },
      { status: 202, verdict: "ask" },
      { status: 200, verdict: "allow" },
    ];
    await before("bash", { command: "x" });
    expect(asked.map(({ body }) => body["wait"])).toEqual([0, 240, 240]);
  });

  test("COORD-2: Vivarium's tools have their own names, and are judged by the gateway alone", async () => {
    await before("create_task", { title: "t" });
    expect(asked).toEqual([]);
    expect(await hooks.tool["create_task"]?.execute({ title: "t" }, {})).toBe("made");
    expect(asked[0]).toMatchObject({
      path: "/mcp",
      body: { method: "tools/call", params: { name: "create_task", arguments: { title: "t" } } },
    });
    const definition: { jsonSchema?: unknown } = {};
    await hooks["tool.definition"]({ toolID: "create_task" }, definition);
    expect(definition.jsonSchema).toMatchObject({ required: ["title"] });
  });

  test("outside a run it leaves the user's permissions alone", async () => {
    const config = { permission: { "*": "ask" } };
    await hooks.config(config);
    expect(config).toEqual({ permission: { "*": "ask" } });
  });
});
