/** NET-5: budgets of a sandbox, a task, a project and a day stop the next request, in the words of the API that was called. */
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Audit } from "../../src/rules/audit/audit.ts";
import { Models } from "../../src/rules/models/models.ts";
import { ModelSettings } from "../../src/rules/models/settings.ts";
import type { BudgetsConfig } from "../../src/base/schema/model.ts";
import { SecretInterceptor } from "../../src/rules/secrets/interceptor.ts";
import { SealingKey } from "../../src/rules/secrets/sealing-key.ts";
import { Secrets } from "../../src/rules/secrets/secrets.ts";
import { openSqliteStore } from "../../src/base/store/sqlite/sqlite.ts";
import type { Store } from "../../src/base/store/store.ts";
import type { SandboxRow } from "../../src/base/store/rows.ts";
import { openModelApi } from "../support/model-api.ts";
import type { ScriptedModel } from "../support/scripted-model.ts";
import { aSandboxRow } from "../support/rows.ts";
import { eventually } from "../support/server.ts";

/** Ten dollars for a million tokens answered: an answer of the API, 500 tokens, costs 7,000 millionths with what was sent. */
const PRICES = { test: { input: 1, output: 10, cacheRead: 0.5 } };
const ANSWER = 7_000;
const CALLS = {
  messages: ["anthropic/v1/messages", { model: "test", max_tokens: 500, messages: [] }],
  chat: ["openai/chat/completions", { model: "test", max_completion_tokens: 500, messages: [] }],
  responses: ["openai/responses", { model: "test", max_output_tokens: 500, input: "hi" }],
  gemini: ["gemini/v1beta/models/test:generateContent", { generationConfig: { maxOutputTokens: 500 }, contents: [] }],
} as const;
type Call = keyof typeof CALLS;

const box = (id: string, project: string, labels: Record<string, string> = {}): SandboxRow =>
  aSandboxRow({ id, name: id, project, labels });
const BOXES = {
  one: box("sbx00000000000000000000000001", "/p", { task: "red" }),
  two: box("sbx00000000000000000000000002", "/p", { task: "red" }),
  three: box("sbx00000000000000000000000003", "/p", { experiment: "exp" }),
  four: box("sbx00000000000000000000000004", "/q"),
};

describe("budgets of models", () => {
  let place: string;
  let api: ScriptedModel;
  let store: Store;
  let models: Models;
  let server: Server | undefined;
  let asked: string;

  beforeEach(async () => {
    place = mkdtempSync(join(tmpdir(), "viv-budgets-"));
    api = await openModelApi();
  });
  afterEach(async () => {
    vi.useRealTimers();
    await down();
    api.close();
    rmSync(place, { recursive: true, force: true });
  });

  /** A gateway with these budgets over the same database. */
  async function up(budgets: BudgetsConfig): Promise<void> {
    store = await openSqliteStore(join(place, "vivarium.db"));
    const audit = new Audit(store, join(place, "anchor"), () => undefined);
    const secrets = await Secrets.open(store, audit, new SealingKey(join(place, "secrets-key")), { reserved: new Set(["key"]) });
    await secrets.set("key", "the-key-of-the-api", { hosts: [new URL(api.url).host], methods: [], path: null, header: null }, null);
    await store.change(async (change) => {
      for (const row of Object.values(BOXES)) await change.sandboxes.put(row);
    });
    const providers = {
      anthropic: { url: api.url, secret: "key" },
      openai: { url: `${api.url}/v1`, secret: "key" },
      gemini: { url: api.url, secret: "key" },
    };
    models = new Models({
      store,
      audit,
      secrets,
      interceptor: new SecretInterceptor(secrets, place),
      settings: new ModelSettings({ models: providers, prices: PRICES, budgets }),
      log: { info: () => undefined, warn: () => undefined },
      touch: () => undefined,
    });
    server = createServer((request, response) => void models.serve(String(request.headers["x-sandbox"]), request, response));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    asked = `http://127.0.0.1:${(server.address() as AddressInfo).port}/model`;
  }

  async function down(): Promise<void> {
    server?.closeAllConnections();
    server?.close();
    server = undefined;
    await store.close();
  }

  const ask = (sandbox: keyof typeof BOXES, call: Call, more: object = {}): Promise<Response> =>
    fetch(`${asked}/${CALLS[call][0]}`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-sandbox": BOXES[sandbox].id },
      body: JSON.stringify({ ...CALLS[call][1], ...more }),
    });
  const status = async (sandbox: keyof typeof BOXES, call: Call): Promise<number> => {
    const answer = await ask(sandbox, call);
    await answer.arrayBuffer();
    return answer.status;
  };
  const spent = (): Promise<number> => store.usage.spent({});

  test.each([
    ["sandbox", ["one"], ["two", "three", "four"]],
    ["task", ["one", "two"], ["three", "four"]],
    ["project", ["one", "two", "three"], ["four"]],
    ["day", ["one", "two", "three", "four"], []],
  ] as const)("NET-5: of a %s is looked at before each request, for all that share it and for no other", async (scope, sharing, others) => {
    await up({ [scope]: (2 * ANSWER - 1) / 1e6 });
    // The second answer passes it; the third request is not sent.
    expect(await status(sharing[0], "messages")).toBe(200);
    expect(await status(sharing.at(-1) ?? "one", "chat")).toBe(200);
    const heard = api.received.length;
    for (const sandbox of sharing)
      for (const [call, refused] of Object.entries({ messages: 402, chat: 400, responses: 400, gemini: 402 } as const))
        expect(await status(sandbox, call as Call), `${sandbox} ${call}`).toBe(refused);
    expect(api.received.length).toBe(heard);
    for (const sandbox of others) expect(await status(sandbox, "responses"), sandbox).toBe(200);
  });

  test("NET-5: refuses in the words of each API", async () => {
    await up({ project: 0 });
    const bodies = await Promise.all((["messages", "chat", "responses"] as const).map(async (call) => (await ask("one", call)).json()));
    const message = expect.stringContaining("The budget of this project is used up") as string;
    expect(bodies).toEqual([
      { type: "error", error: { type: "billing_error", message } },
      { error: { message, type: "insufficient_quota", param: null, code: "insufficient_quota" } },
      { error: { message, type: "insufficient_quota", param: null, code: "insufficient_quota" } },
    ]);
    expect((await ask("one", "chat")).headers.get("x-should-retry")).toBe("false");
    expect(api.received).toEqual([]);
  });

  test("NET-5: streams in parallel hold what they may cost: no more is let through than the budget and one request", async () => {
    const hold = 500 * 10;
    await up({ project: (3 * hold) / 1e6 });
    const gate = Promise.withResolvers<void>();
    api.gate = gate.promise;
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, index) => ask((["one", "two", "three"] as const)[index % 3] ?? "one", "messages", { stream: true })),
    );
    const passed = answers.filter((answer) => answer.status === 200);
    // Each holds 5,000 for its answer and a little for what it sends: the third brings it to the budget.
    expect(passed).toHaveLength(3);
    const refused = answers.filter((answer) => answer.status !== 200);
    expect(refused.map((answer) => answer.status)).toEqual(Array.from({ length: 9 }, () => 429));
    expect(await refused[0]?.json()).toMatchObject({ type: "error", error: { type: "rate_limit_error" } });
    expect(await spent()).toBeLessThanOrEqual(3 * hold + ANSWER);
    gate.resolve();
    await Promise.all(passed.map((answer) => answer.text()));
    expect(api.received).toHaveLength(3);
    // What came is what is counted, and it is beyond the budget by less than one answer.
    expect(await eventually(spent, (sum) => sum === 3 * ANSWER)).toBeLessThan(3 * hold + ANSWER);
    expect(await status("one", "messages")).toBe(402);
  });

  test("NET-5: what is held is free again when the answer is an error, or took less", async () => {
    await up({ project: 0.02 });
    for (let round = 0; round < 5; round += 1) expect((await ask("one", "messages", { model: "echo", max_tokens: 100 })).status).toBe(422);
    expect(await eventually(spent, (sum) => sum === 0)).toBe(0);
    expect(await status("one", "messages")).toBe(200);
    expect(await eventually(spent, (sum) => sum === ANSWER)).toBe(ANSWER);
  });

  test("NET-5: a request is held by the field that its call goes by, and by the most where it names none", async () => {
    await up({ project: 1 });
    const gate = Promise.withResolvers<void>();
    api.gate = gate.promise;
    const held = async (call: Call, more: object): Promise<number> => {
      const before = await spent();
      const answer = await ask("one", call, { ...more, stream: true });
      const after = await spent();
      void answer.body?.cancel();
      await eventually(spent, (sum) => sum !== after);
      return Math.round((after - before) / 1000);
    };
    // A field of another call does not lower it: 16,384 tokens are held.
    expect(await held("responses", { max_output_tokens: undefined, max_tokens: 1 })).toBe(164);
    expect(await held("chat", { max_completion_tokens: 2000, max_tokens: 1, n: 3 })).toBe(60);
    expect(await held("messages", { max_tokens: 1000, service_tier: "priority" })).toBe(25);
    gate.resolve();
  });

  test("NET-5: sums are there after a restart, and a new day has a new budget", async () => {
    await up({ day: (ANSWER - 1) / 1e6 });
    expect(await status("one", "messages")).toBe(200);
    await eventually(spent, (sum) => sum === ANSWER);
    await down();
    await up({ day: (ANSWER - 1) / 1e6 });
    expect(await status("four", "responses")).toBe(400);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 24 * 3_600_000 });
    expect(await status("four", "responses")).toBe(200);
  });
});
