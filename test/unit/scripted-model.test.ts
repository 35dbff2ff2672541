/** The model that other tests trust: each API's own client would understand it, and the step follows from the history alone. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ScriptedModel } from "../support/scripted-model.ts";

const SCRIPT = [
  { text: "I look.", thinking: "Where?", calls: [{ name: "look", input: { at: "a" } }], usage: { input: 7 } },
  { text: "Done.", failures: [{ status: 429, headers: { "retry-after": "2" }, message: "Slow down" }] },
];

describe("the scripted model", () => {
  let model: ScriptedModel;
  const ask = async (path: string, body: object): Promise<{ status: number; headers: Headers; text: string }> => {
    const answer = await fetch(model.url + path, { method: "POST", body: JSON.stringify(body) });
    return { status: answer.status, headers: answer.headers, text: await answer.text() };
  };

  beforeAll(async () => {
    model = await ScriptedModel.open();
  });
  afterAll(() => model.close());

  const tools = {
    anthropic: [{ name: "look" }],
    chat: [{ function: { name: "look" } }],
    gemini: [{ functionDeclarations: [{ name: "look" }] }],
  };
  const user = { role: "user", content: "go" };
  const result = { role: "user", content: [] };
  test.each([
    [
      "/v1/messages",
      { tools: tools.anthropic, messages: [user] },
      [user, { role: "assistant", content: [] }, result],
      "messages",
      "tool_use",
    ],
    [
      "/v1/chat/completions",
      { tools: tools.chat, messages: [user] },
      [user, { role: "assistant", tool_calls: [] }, { role: "tool" }],
      "messages",
      '"tool_calls"',
    ],
    [
      "/v1/responses",
      { tools: [{ type: "function", name: "look" }], input: [user] },
      [user, { type: "reasoning" }, { type: "message", role: "assistant" }, { type: "function_call" }, { type: "function_call_output" }],
      "input",
      '"function_call"',
    ],
    [
      "/v1beta/models/demo:streamGenerateContent?alt=sse",
      { tools: tools.gemini, contents: [user] },
      [user, { role: "model", parts: [] }, { role: "user", parts: [] }],
      "contents",
      '"functionCall"',
    ],
  ])("plays its steps by the history over %s, with what fails before them", async (path, first, history, name, called) => {
    model.script("demo", SCRIPT);
    const body = { model: "demo", stream: true, ...first };
    const called1 = await ask(path, body);
    expect(called1.text).toContain("I look.");
    expect(called1.text).toContain(called);
    expect(model.last).toMatchObject({ model: "demo", turn: 0, tools: ["look"] });
    const refused = await ask(path, { ...body, [name]: history });
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "2"]);
    expect(refused.text).toContain("Slow down");
    expect((await ask(path, { ...body, [name]: history })).text).toContain("Done.");
    expect(model.last.turn).toBe(1);
  });

  test("answers a request without tools beside the script, and every answer has an id of its own", async () => {
    model.script("demo", SCRIPT);
    const body = { model: "demo", messages: [user] };
    const titles = [await ask("/v1/messages", body), await ask("/v1/messages", body)].map(({ text }) => JSON.parse(text) as { id: string });
    expect(titles[0]).toMatchObject({ content: [{ type: "text", text: "hello" }], stop_reason: "end_turn" });
    expect(titles[0]?.id).not.toBe(titles[1]?.id);
  });

  test("breaks a stream off, and is waited for", async () => {
    model.script("broken", [{ text: "Half", breaks: true }]);
    const heard = model.waitFor((request) => request.model === "broken");
    await expect(ask("/v1/messages", { model: "broken", stream: true, messages: [user] })).rejects.toThrow(/terminated/);
    expect((await heard).path).toBe("/v1/messages");
    await expect(model.waitFor((request) => request.model === "never", 10)).rejects.toThrow("was not asked that");
  });
});
